-- The tables of `plimsoll export -o tables`, as views. Begin with this file: `duckdb -init tables.sql`.
CREATE OR REPLACE VIEW runs AS FROM 'tables/runs-*.parquet';
CREATE OR REPLACE VIEW steps AS FROM 'tables/steps-*.parquet';
CREATE OR REPLACE VIEW intervals AS FROM 'tables/intervals-*.parquet';
CREATE OR REPLACE VIEW waits AS FROM 'tables/waits-*.parquet';
CREATE OR REPLACE VIEW buckets AS FROM 'tables/buckets-*.parquet';
CREATE OR REPLACE VIEW counters AS FROM 'tables/counters-*.parquet';
CREATE OR REPLACE VIEW episodes AS FROM 'tables/episodes-*.parquet';
CREATE OR REPLACE VIEW findings AS FROM 'tables/findings-*.parquet';
CREATE OR REPLACE VIEW parts AS FROM 'tables/parts-*.parquet';
