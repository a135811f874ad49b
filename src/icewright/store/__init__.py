"""The database: engine, transactions, migrations, and the tables that others refer to."""
