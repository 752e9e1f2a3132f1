"""Files of records and of public keys. Secret: what is read here may not leave."""
