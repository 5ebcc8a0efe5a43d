import os

SECRET_KEY = os.environ["APP_SECRET_KEY"]  # no default, as in production
DEBUG = False
ALLOWED_HOSTS = ["shop.example"]
ROOT_URLCONF = "site_config.urls"
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.common.CommonMiddleware",
]
SECURE_SSL_REDIRECT = os.environ.get("SSL_REDIRECT") == "1"
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
APPEND_SLASH = True
