"""Result files: schema, reading, writing, checksums, provenance, and analysis across cells."""
