import os

SECRET_KEY = "of a test"
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "shop.urls"
INSTALLED_APPS = ["shop"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Connections per worker process.
POOL_SIZE = int(os.environ["POOL_SIZE"])
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "postgres",
        "USER": "shop",
        "HOST": "127.0.0.1",
        "PORT": os.environ["DATABASE_PORT"],
        "OPTIONS": {"pool": {"min_size": POOL_SIZE, "max_size": POOL_SIZE, "timeout": 30}},
    }
}
