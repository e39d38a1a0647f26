-- Until when one process renews the tokens of a session, by the database's clock: clocks of machines differ. Null: none
-- does.
alter table console_sessions add column claim_ms bigint;

comment on table migrations is 'schema version 5';
