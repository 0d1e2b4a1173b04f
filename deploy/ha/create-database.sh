#!/bin/sh
# Patroni runs this once, on the first primary, with the URL of a superuser: the role and the database of the relays.
set -eu
psql --quiet --set ON_ERROR_STOP=1 --set password="$CROSSTALK_DATABASE_PASSWORD" "$1" <<'SQL'
CREATE ROLE crosstalk LOGIN PASSWORD :'password';
CREATE DATABASE crosstalk OWNER crosstalk TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C';
SQL
