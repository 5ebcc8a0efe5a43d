"""The bundled apps under test: each one file that servers import by its bare name, without wsgiload."""
