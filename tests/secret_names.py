"""Names of secrets for tests."""

from __future__ import annotations

# Names of secrets, most of which do not contain a suspicious word.
SECRET_NAMES = (
    *("Authorization", "Proxy-Authorization", "X-Api-Key", "X-Auth-Token", "X-JWT-Assertion"),
    *("CF-Access-Jwt-Assertion", "X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token"),
    *("X-Goog-Signature", "X-Goog-IAP-JWT-Assertion", "X-Hub-Signature-256", "X-Vault-Token"),
    *("X-CSRF-Token", "X-Forwarded-Access", "X-Client-Cert", "X-Shopify-Hmac", "X-Plex", "DPoP"),
    *("sig", "code", "state", "nonce", "otp", "pin", "sid", "jwt", "assertion", "SAMLResponse"),
    *("access_token", "refresh_token", "id_token", "client_assertion", "api_key", "apikey", "key"),
    *("sessionid", "connect.sid", "JSESSIONID", "remember_me", "_gh_sess", "ticket", "invite"),
    *("GITHUB_PAT", "JWT", "SIGNING_KEYS", "LDAP_BIND_PW", "STRIPE_SK", "SLACK_WEBHOOK"),
    *("SECRET_KEY", "AWS_SECRET_ACCESS_KEY", "DB_PASS", "SENTRY_DSN", "DB_PWD", "AccountKey"),
    *("PGPASSFILE", "NPM_AUTH", "TWILIO_SID", "HMAC", "FERNET", "KUBECONFIG_DATA", "VAULT_UNSEAL"),
    *("OPENAI", "RECOVERY", "SEED", "SALT", "PEPPER", "email", "ssn", "iban"),
)
