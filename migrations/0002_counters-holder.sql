-- The one process that counts tokens in its own memory; the holder is empty while there is none, and the counter moves while it lives.
create table counters_holder (
  only_row boolean primary key default true check (only_row),
  holder text not null,
  counter bigint not null check (counter >= 0)
);
insert into counters_holder (holder, counter) values ('', 0);
