"""Result files: their schema, the one reader and the one writer."""
