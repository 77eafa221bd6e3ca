"""Extensions: how they are configured, declared in decorators, listed, and read as source."""
