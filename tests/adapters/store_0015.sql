BEGIN TRANSACTION;
CREATE TABLE attempts (
	task_id TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	optimizer_id TEXT NOT NULL, 
	fencing_token BIGINT NOT NULL, 
	state TEXT NOT NULL, 
	started_at BIGINT NOT NULL, 
	ended_at BIGINT, 
	progress TEXT, 
	report TEXT, 
	CONSTRAINT pk_attempts PRIMARY KEY (task_id, attempt), 
	CONSTRAINT uq_attempts_fencing_token UNIQUE (fencing_token), 
	CONSTRAINT fk_attempts_task FOREIGN KEY(task_id) REFERENCES tasks (task_id)
);
INSERT INTO "attempts" VALUES('task-queued',1,'o',1,'failed',1700000000000,1700000000000,NULL,NULL);
INSERT INTO "attempts" VALUES('task-running',1,'o',2,'running',1700000000000,NULL,'{"phase":"merging","groups_done":1,"groups_total":2}',NULL);
INSERT INTO "attempts" VALUES('task-in_doubt',1,'o',3,'unknown',1700000000000,1700000000000,NULL,NULL);
INSERT INTO "attempts" VALUES('task-committed',1,'o',4,'committed',1700000000000,1700000000000,NULL,NULL);
INSERT INTO "attempts" VALUES('task-queued',2,'o',5,'failed',1700000000000,1700000000000,NULL,NULL);
INSERT INTO "attempts" VALUES('task-succeeded',1,'o',6,'committed',1700000000000,1700000000000,NULL,'{"x": 1}');
INSERT INTO "attempts" VALUES('task-failed',1,'o',7,'failed',1700000000000,1700000000000,NULL,NULL);
INSERT INTO "attempts" VALUES('task-queued',3,'o',8,'failed',1700000000000,1700000000000,NULL,NULL);
INSERT INTO "attempts" VALUES('task-superseded',1,'o',9,'conflict',1700000000000,1700000000000,NULL,NULL);
CREATE TABLE claims (
	catalog TEXT NOT NULL, 
	name_digest TEXT NOT NULL, 
	claim TEXT NOT NULL, 
	CONSTRAINT pk_claims PRIMARY KEY (catalog, name_digest)
);
CREATE TABLE counters (
	name TEXT NOT NULL, 
	value BIGINT NOT NULL, 
	CONSTRAINT pk_counters PRIMARY KEY (name)
);
INSERT INTO "counters" VALUES('fencing_token',9);
INSERT INTO "counters" VALUES('server_epoch',0);
CREATE TABLE deletion_approvals (
	plan_hash TEXT NOT NULL, 
	approval TEXT NOT NULL, 
	CONSTRAINT pk_deletion_approvals PRIMARY KEY (plan_hash)
);
CREATE TABLE deletion_intents (
	run_id TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	state TEXT NOT NULL, 
	version BIGINT NOT NULL, 
	size_bytes BIGINT NOT NULL, 
	intent TEXT NOT NULL, 
	CONSTRAINT pk_deletion_intents PRIMARY KEY (run_id, number), 
	CONSTRAINT fk_deletion_intents_run FOREIGN KEY(run_id) REFERENCES deletion_runs (run_id)
);
CREATE TABLE deletion_runs (
	run_id TEXT NOT NULL, 
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	plan_hash TEXT NOT NULL, 
	is_open BOOLEAN NOT NULL, 
	next_at BIGINT NOT NULL, 
	run TEXT NOT NULL, 
	CONSTRAINT pk_deletion_runs PRIMARY KEY (run_id)
);
CREATE TABLE icewright_schema (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT icewright_schema_pkc PRIMARY KEY (version_num)
);
INSERT INTO "icewright_schema" VALUES('0015');
CREATE TABLE inbox (
	event_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name_digest TEXT NOT NULL, 
	snapshot_id BIGINT NOT NULL, 
	event TEXT NOT NULL, 
	received_at BIGINT NOT NULL, 
	done_at BIGINT, 
	CONSTRAINT uq_inbox_snapshot UNIQUE (name_digest, snapshot_id)
);
INSERT INTO "inbox" VALUES(1,'7e1176de3abd8c899d258f06ab71f0e86260a374a86e01ee88be85ea99ccde62',7,'{"table_name":{"catalog":"lake","namespace":["ns"],"name":"t1"},"snapshot_id":7,"table_uuid":null,"operation":null,"added_data_files":null,"added_records":null}',1700000000000,NULL);
CREATE TABLE kept_of_tasks (
	task_id TEXT NOT NULL, 
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	kept_at BIGINT NOT NULL, 
	content BLOB NOT NULL, 
	CONSTRAINT pk_kept_of_tasks PRIMARY KEY (task_id)
);
CREATE TABLE manifests (
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	key_digest TEXT NOT NULL, 
	path TEXT NOT NULL, 
	length_bytes BIGINT NOT NULL, 
	added_snapshot_id BIGINT NOT NULL, 
	content TEXT NOT NULL, 
	summary BLOB NOT NULL, 
	CONSTRAINT pk_manifests PRIMARY KEY (catalog, table_uuid, key_digest), 
	CONSTRAINT fk_manifests_table FOREIGN KEY(catalog, table_uuid) REFERENCES tables (catalog, table_uuid)
);
CREATE TABLE optimizers (
	optimizer_id TEXT NOT NULL, 
	hello TEXT NOT NULL, 
	seen_at BIGINT NOT NULL, 
	CONSTRAINT pk_optimizers PRIMARY KEY (optimizer_id)
);
CREATE TABLE orphan_passes (
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	begun BIGINT NOT NULL, 
	finished_number BIGINT NOT NULL, 
	finished TEXT, 
	CONSTRAINT pk_orphan_passes PRIMARY KEY (catalog, table_uuid)
);
CREATE TABLE orphan_sightings (
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	chunk BIGINT NOT NULL, 
	sightings BLOB NOT NULL, 
	CONSTRAINT pk_orphan_sightings PRIMARY KEY (catalog, table_uuid, number, chunk), 
	CONSTRAINT fk_orphan_sightings_pass FOREIGN KEY(catalog, table_uuid) REFERENCES orphan_passes (catalog, table_uuid)
);
CREATE TABLE partitions (
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	spec_id INTEGER NOT NULL, 
	values_digest TEXT NOT NULL, 
	partition_values TEXT NOT NULL, 
	statistics TEXT NOT NULL, 
	CONSTRAINT pk_partitions PRIMARY KEY (catalog, table_uuid, spec_id, values_digest), 
	CONSTRAINT fk_partitions_table FOREIGN KEY(catalog, table_uuid) REFERENCES tables (catalog, table_uuid)
);
CREATE TABLE plans (
	plan_id TEXT NOT NULL, 
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	planned_at BIGINT NOT NULL, 
	"plan" BLOB NOT NULL, 
	CONSTRAINT pk_plans PRIMARY KEY (plan_id)
);
CREATE TABLE runs (
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	snapshot_id BIGINT NOT NULL, 
	level TEXT NOT NULL, 
	layout TEXT NOT NULL, 
	committed_at BIGINT NOT NULL, 
	CONSTRAINT pk_runs PRIMARY KEY (catalog, table_uuid, snapshot_id), 
	CONSTRAINT fk_runs_table FOREIGN KEY(catalog, table_uuid) REFERENCES tables (catalog, table_uuid)
);
CREATE TABLE tables (
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	name_digest TEXT NOT NULL, 
	name TEXT NOT NULL, 
	metadata_location TEXT NOT NULL, 
	snapshot_id BIGINT, 
	format_version INTEGER NOT NULL, 
	observed_at BIGINT NOT NULL, 
	changed_at BIGINT NOT NULL, 
	commit_interval_ms BIGINT, 
	next_look_at BIGINT NOT NULL, 
	plan_id TEXT, 
	problem TEXT, 
	dropped_at BIGINT, marks TEXT, 
	CONSTRAINT pk_tables PRIMARY KEY (catalog, table_uuid)
);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000000','0afbe531da0183c915de265db6be35de9566dca51d2d4fbe3f1baa20274fa297','{"catalog":"lake","namespace":["ns"],"name":"t0"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000001','7e1176de3abd8c899d258f06ab71f0e86260a374a86e01ee88be85ea99ccde62','{"catalog":"lake","namespace":["ns"],"name":"t1"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000002','eb7d85603975deff49919f01b4b62224b2b2e7eb1a6bc28bbb07840b87275bb9','{"catalog":"lake","namespace":["ns"],"name":"t2"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000003','a0abd6519eb17858f247aad9432204806a9af39ae1c6dda78c8fef897b1d5030','{"catalog":"lake","namespace":["ns"],"name":"t3"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000004','d59bb18d398451215e45a05ad383bc90e522bd39c096ba311b8f8578743ab54f','{"catalog":"lake","namespace":["ns"],"name":"t4"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000005','b8ae2f05ddd42520f988c0caaf5d74cf27407d0b8f44eba21223b8de8f251ff5','{"catalog":"lake","namespace":["ns"],"name":"t5"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000006','faa81e97202b80f240a6ea067c750fb407e14cd4a1dedf25190cdaffdf81371c','{"catalog":"lake","namespace":["ns"],"name":"t6"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000007','cb6685198c776f2ccf3fd2e5491f31cf3b34ff794a79cff539e4ef0e6babcc75','{"catalog":"lake","namespace":["ns"],"name":"t7"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,NULL,NULL);
CREATE TABLE task_actions (
	task_id TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	action BLOB NOT NULL, 
	CONSTRAINT pk_task_actions PRIMARY KEY (task_id), 
	CONSTRAINT fk_task_actions_task FOREIGN KEY(task_id) REFERENCES tasks (task_id)
);
INSERT INTO "task_actions" VALUES('task-queued','4063474f30717439da1d51729ccf22839e3b0f18889a4cefe0b70d719ade4291',X'789CC591DD6E84201046DF65AEDD2A6B7A43D2273186A08E2B298285617F6AF6DD3BEABADDF4057A050C87331F30C3A7711D480878098650759AB4EA8DC50819343AA28A4E4F71F0A40C732283D80E38EA755564700A3E4D1164356FD3BD3EE940868C7720678813B6FBC659DBC47209550DF7174E4D9A062E8FDED1F0712C4479280467D8B22CFE07104B99E74D5EBCF1D1AF84C44C34DFA89A1B2DA0E01E015B1F3AD5FAE408E43183F5561119772D2A97C60603C872B3ABDE87513308BFC6DE84482AF8CB1ADB256B598216D716557DCFFEC611FF1AA7CE00AFD826F26179420C27849D50FB0B32E4134D89F68A78169E1FB4A8171B69566CA07ABDCEBBE0F816CF68B9CF3A1E0AEE64F58D4D8FE33F1F32CD17');
INSERT INTO "task_actions" VALUES('task-running','4063474f30717439da1d51729ccf22839e3b0f18889a4cefe0b70d719ade4291',X'789CC591DD6E84201046DF65AEDD2A6B7A43D2273186A08E2B298285617F6AF6DD3BEABADDF4057A050C87331F30C3A7711D480878098650759AB4EA8DC50819343AA28A4E4F71F0A40C732283D80E38EA755564700A3E4D1164356FD3BD3EE940868C7720678813B6FBC659DBC47209550DF7174E4D9A062E8FDED1F0712C4479280467D8B22CFE07104B99E74D5EBCF1D1AF84C44C34DFA89A1B2DA0E01E015B1F3AD5FAE408E43183F5561119772D2A97C60603C872B3ABDE87513308BFC6DE84482AF8CB1ADB256B598216D716557DCFFEC611FF1AA7CE00AFD826F26179420C27849D50FB0B32E4134D89F68A78169E1FB4A8171B69566CA07ABDCEBBE0F816CF68B9CF3A1E0AEE64F58D4D8FE33F1F32CD17');
INSERT INTO "task_actions" VALUES('task-in_doubt','4063474f30717439da1d51729ccf22839e3b0f18889a4cefe0b70d719ade4291',X'789CC591DD6E84201046DF65AEDD2A6B7A43D2273186A08E2B298285617F6AF6DD3BEABADDF4057A050C87331F30C3A7711D480878098650759AB4EA8DC50819343AA28A4E4F71F0A40C732283D80E38EA755564700A3E4D1164356FD3BD3EE940868C7720678813B6FBC659DBC47209550DF7174E4D9A062E8FDED1F0712C4479280467D8B22CFE07104B99E74D5EBCF1D1AF84C44C34DFA89A1B2DA0E01E015B1F3AD5FAE408E43183F5561119772D2A97C60603C872B3ABDE87513308BFC6DE84482AF8CB1ADB256B598216D716557DCFFEC611FF1AA7CE00AFD826F26179420C27849D50FB0B32E4134D89F68A78169E1FB4A8171B69566CA07ABDCEBBE0F816CF68B9CF3A1E0AEE64F58D4D8FE33F1F32CD17');
INSERT INTO "task_actions" VALUES('task-committed','4063474f30717439da1d51729ccf22839e3b0f18889a4cefe0b70d719ade4291',X'789CC591DD6E84201046DF65AEDD2A6B7A43D2273186A08E2B298285617F6AF6DD3BEABADDF4057A050C87331F30C3A7711D480878098650759AB4EA8DC50819343AA28A4E4F71F0A40C732283D80E38EA755564700A3E4D1164356FD3BD3EE940868C7720678813B6FBC659DBC47209550DF7174E4D9A062E8FDED1F0712C4479280467D8B22CFE07104B99E74D5EBCF1D1AF84C44C34DFA89A1B2DA0E01E015B1F3AD5FAE408E43183F5561119772D2A97C60603C872B3ABDE87513308BFC6DE84482AF8CB1ADB256B598216D716557DCFFEC611FF1AA7CE00AFD826F26179420C27849D50FB0B32E4134D89F68A78169E1FB4A8171B69566CA07ABDCEBBE0F816CF68B9CF3A1E0AEE64F58D4D8FE33F1F32CD17');
INSERT INTO "task_actions" VALUES('task-succeeded','4063474f30717439da1d51729ccf22839e3b0f18889a4cefe0b70d719ade4291',X'789CC591DD6E84201046DF65AEDD2A6B7A43D2273186A08E2B298285617F6AF6DD3BEABADDF4057A050C87331F30C3A7711D480878098650759AB4EA8DC50819343AA28A4E4F71F0A40C732283D80E38EA755564700A3E4D1164356FD3BD3EE940868C7720678813B6FBC659DBC47209550DF7174E4D9A062E8FDED1F0712C4479280467D8B22CFE07104B99E74D5EBCF1D1AF84C44C34DFA89A1B2DA0E01E015B1F3AD5FAE408E43183F5561119772D2A97C60603C872B3ABDE87513308BFC6DE84482AF8CB1ADB256B598216D716557DCFFEC611FF1AA7CE00AFD826F26179420C27849D50FB0B32E4134D89F68A78169E1FB4A8171B69566CA07ABDCEBBE0F816CF68B9CF3A1E0AEE64F58D4D8FE33F1F32CD17');
INSERT INTO "task_actions" VALUES('task-failed','4063474f30717439da1d51729ccf22839e3b0f18889a4cefe0b70d719ade4291',X'789CC591DD6E84201046DF65AEDD2A6B7A43D2273186A08E2B298285617F6AF6DD3BEABADDF4057A050C87331F30C3A7711D480878098650759AB4EA8DC50819343AA28A4E4F71F0A40C732283D80E38EA755564700A3E4D1164356FD3BD3EE940868C7720678813B6FBC659DBC47209550DF7174E4D9A062E8FDED1F0712C4479280467D8B22CFE07104B99E74D5EBCF1D1AF84C44C34DFA89A1B2DA0E01E015B1F3AD5FAE408E43183F5561119772D2A97C60603C872B3ABDE87513308BFC6DE84482AF8CB1ADB256B598216D716557DCFFEC611FF1AA7CE00AFD826F26179420C27849D50FB0B32E4134D89F68A78169E1FB4A8171B69566CA07ABDCEBBE0F816CF68B9CF3A1E0AEE64F58D4D8FE33F1F32CD17');
INSERT INTO "task_actions" VALUES('task-cancelled','4063474f30717439da1d51729ccf22839e3b0f18889a4cefe0b70d719ade4291',X'789CC591DD6E84201046DF65AEDD2A6B7A43D2273186A08E2B298285617F6AF6DD3BEABADDF4057A050C87331F30C3A7711D480878098650759AB4EA8DC50819343AA28A4E4F71F0A40C732283D80E38EA755564700A3E4D1164356FD3BD3EE940868C7720678813B6FBC659DBC47209550DF7174E4D9A062E8FDED1F0712C4479280467D8B22CFE07104B99E74D5EBCF1D1AF84C44C34DFA89A1B2DA0E01E015B1F3AD5FAE408E43183F5561119772D2A97C60603C872B3ABDE87513308BFC6DE84482AF8CB1ADB256B598216D716557DCFFEC611FF1AA7CE00AFD826F26179420C27849D50FB0B32E4134D89F68A78169E1FB4A8171B69566CA07ABDCEBBE0F816CF68B9CF3A1E0AEE64F58D4D8FE33F1F32CD17');
INSERT INTO "task_actions" VALUES('task-superseded','4063474f30717439da1d51729ccf22839e3b0f18889a4cefe0b70d719ade4291',X'789CC591DD6E84201046DF65AEDD2A6B7A43D2273186A08E2B298285617F6AF6DD3BEABADDF4057A050C87331F30C3A7711D480878098650759AB4EA8DC50819343AA28A4E4F71F0A40C732283D80E38EA755564700A3E4D1164356FD3BD3EE940868C7720678813B6FBC659DBC47209550DF7174E4D9A062E8FDED1F0712C4479280467D8B22CFE07104B99E74D5EBCF1D1AF84C44C34DFA89A1B2DA0E01E015B1F3AD5FAE408E43183F5561119772D2A97C60603C872B3ABDE87513308BFC6DE84482AF8CB1ADB256B598216D716557DCFFEC611FF1AA7CE00AFD826F26179420C27849D50FB0B32E4134D89F68A78169E1FB4A8171B69566CA07ABDCEBBE0F816CF68B9CF3A1E0AEE64F58D4D8FE33F1F32CD17');
CREATE TABLE task_history (
	task_id TEXT NOT NULL, 
	version BIGINT NOT NULL, 
	state TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	reason TEXT NOT NULL, 
	CONSTRAINT pk_task_history PRIMARY KEY (task_id, version), 
	CONSTRAINT fk_task_history_task FOREIGN KEY(task_id) REFERENCES tasks (task_id)
);
INSERT INTO "task_history" VALUES('task-queued',1,'queued',0,1700000000000,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}');
INSERT INTO "task_history" VALUES('task-running',1,'queued',0,1700000000000,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}');
INSERT INTO "task_history" VALUES('task-queued',2,'running',1,1700000000000,'{"code":"claimed","text":"try 1, by o","figures":{"fencing_token":1}}');
INSERT INTO "task_history" VALUES('task-running',2,'running',1,1700000000000,'{"code":"claimed","text":"try 1, by o","figures":{"fencing_token":2}}');
INSERT INTO "task_history" VALUES('task-queued',3,'queued',1,1700000000000,'{"code":"done","text":"all well","figures":{}}');
INSERT INTO "task_history" VALUES('task-in_doubt',1,'queued',0,1700000000000,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}');
INSERT INTO "task_history" VALUES('task-in_doubt',2,'running',1,1700000000000,'{"code":"claimed","text":"try 1, by o","figures":{"fencing_token":3}}');
INSERT INTO "task_history" VALUES('task-in_doubt',3,'in_doubt',1,1700000000000,'{"code":"done","text":"all well","figures":{}}');
INSERT INTO "task_history" VALUES('task-committed',1,'queued',0,1700000000000,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}');
INSERT INTO "task_history" VALUES('task-committed',2,'running',1,1700000000000,'{"code":"claimed","text":"try 1, by o","figures":{"fencing_token":4}}');
INSERT INTO "task_history" VALUES('task-committed',3,'committed',1,1700000000000,'{"code":"done","text":"all well","figures":{}}');
INSERT INTO "task_history" VALUES('task-succeeded',1,'queued',0,1700000000000,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}');
INSERT INTO "task_history" VALUES('task-queued',4,'running',2,1700000000000,'{"code":"claimed","text":"try 2, by o","figures":{"fencing_token":5}}');
INSERT INTO "task_history" VALUES('task-succeeded',2,'running',1,1700000000000,'{"code":"claimed","text":"try 1, by o","figures":{"fencing_token":6}}');
INSERT INTO "task_history" VALUES('task-queued',5,'queued',2,1700000000000,'{"code":"done","text":"all well","figures":{}}');
INSERT INTO "task_history" VALUES('task-succeeded',3,'committed',1,1700000000000,'{"code":"done","text":"all well","figures":{}}');
INSERT INTO "task_history" VALUES('task-succeeded',4,'succeeded',1,1700000000000,'{"code":"done","text":"all well","figures":{}}');
INSERT INTO "task_history" VALUES('task-failed',1,'queued',0,1700000000000,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}');
INSERT INTO "task_history" VALUES('task-failed',2,'running',1,1700000000000,'{"code":"claimed","text":"try 1, by o","figures":{"fencing_token":7}}');
INSERT INTO "task_history" VALUES('task-failed',3,'failed',1,1700000000000,'{"code":"done","text":"all well","figures":{}}');
INSERT INTO "task_history" VALUES('task-cancelled',1,'queued',0,1700000000000,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}');
INSERT INTO "task_history" VALUES('task-cancelled',2,'cancelled',0,1700000000000,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}');
INSERT INTO "task_history" VALUES('task-superseded',1,'queued',0,1700000000000,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}');
INSERT INTO "task_history" VALUES('task-queued',6,'running',3,1700000000000,'{"code":"claimed","text":"try 3, by o","figures":{"fencing_token":8}}');
INSERT INTO "task_history" VALUES('task-superseded',2,'running',1,1700000000000,'{"code":"claimed","text":"try 1, by o","figures":{"fencing_token":9}}');
INSERT INTO "task_history" VALUES('task-queued',7,'queued',3,1700000000000,'{"code":"done","text":"all well","figures":{}}');
INSERT INTO "task_history" VALUES('task-superseded',3,'superseded',1,1700000000000,'{"code":"done","text":"all well","figures":{}}');
CREATE TABLE tasks (
	task_id TEXT NOT NULL, 
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	table_name TEXT NOT NULL, 
	plan_id TEXT NOT NULL, 
	resource_group TEXT NOT NULL, 
	priority BIGINT NOT NULL, 
	ranked_at BIGINT NOT NULL, 
	attempts_max INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	version BIGINT NOT NULL, 
	attempt INTEGER NOT NULL, 
	created_at BIGINT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	not_before_at BIGINT NOT NULL, 
	lease_optimizer_id TEXT, 
	lease_fencing_token BIGINT, 
	lease_expires_at BIGINT, 
	cancel_requested BOOLEAN NOT NULL, 
	reason TEXT NOT NULL, 
	prediction TEXT NOT NULL, 
	progress TEXT, 
	outcome TEXT, figures TEXT, shareable_bytes BIGINT, 
	CONSTRAINT pk_tasks PRIMARY KEY (task_id), 
	CONSTRAINT ck_tasks_lease CHECK ((state IN ('running', 'in_doubt')) = (lease_fencing_token IS NOT NULL) AND (lease_fencing_token IS NULL) = (lease_optimizer_id IS NULL) AND (lease_fencing_token IS NULL) = (lease_expires_at IS NULL))
);
INSERT INTO "tasks" VALUES('task-queued','lake','00000000-0000-4000-8000-000000000000','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t0"}','plan-1','default',0,1700000000000,3,'queued',7,3,1700000000000,1700000000000,1700000000000,NULL,NULL,NULL,0,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}',NULL,'{"reason":{"code":"done","text":"all well","figures":{}},"snapshot_id":7}','{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20);
INSERT INTO "tasks" VALUES('task-running','lake','00000000-0000-4000-8000-000000000001','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t1"}','plan-1','default',0,1700000000000,3,'running',2,1,1700000000000,1700000000000,1700000000000,'o',2,1700000030000,0,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}','{"phase":"merging","groups_done":1,"groups_total":2}',NULL,'{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20);
INSERT INTO "tasks" VALUES('task-in_doubt','lake','00000000-0000-4000-8000-000000000002','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t2"}','plan-1','default',0,1700000000000,3,'in_doubt',3,1,1700000000000,1700000000000,1700000000000,'o',3,1700000030000,0,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}',NULL,'{"reason":{"code":"done","text":"all well","figures":{}},"snapshot_id":7}','{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20);
INSERT INTO "tasks" VALUES('task-committed','lake','00000000-0000-4000-8000-000000000003','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t3"}','plan-1','default',0,1700000000000,3,'committed',3,1,1700000000000,1700000000000,1700000000000,NULL,NULL,NULL,0,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}',NULL,'{"reason":{"code":"done","text":"all well","figures":{}},"snapshot_id":7}','{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20);
INSERT INTO "tasks" VALUES('task-succeeded','lake','00000000-0000-4000-8000-000000000004','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t4"}','plan-1','default',0,1700000000000,3,'succeeded',4,1,1700000000000,1700000000000,1700000000000,NULL,NULL,NULL,0,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}',NULL,'{"reason":{"code":"done","text":"all well","figures":{}},"snapshot_id":7}','{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20);
INSERT INTO "tasks" VALUES('task-failed','lake','00000000-0000-4000-8000-000000000005','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t5"}','plan-1','default',0,1700000000000,3,'failed',3,1,1700000000000,1700000000000,1700000000000,NULL,NULL,NULL,0,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}',NULL,'{"reason":{"code":"done","text":"all well","figures":{}},"snapshot_id":7}','{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20);
INSERT INTO "tasks" VALUES('task-cancelled','lake','00000000-0000-4000-8000-000000000006','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t6"}','plan-1','default',0,1700000000000,3,'cancelled',2,0,1700000000000,1700000000000,1700000000000,NULL,NULL,NULL,1,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}',NULL,'{"reason":{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}},"snapshot_id":null}','{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20);
INSERT INTO "tasks" VALUES('task-superseded','lake','00000000-0000-4000-8000-000000000007','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t7"}','plan-1','default',0,1700000000000,3,'superseded',3,1,1700000000000,1700000000000,1700000000000,NULL,NULL,NULL,0,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}',NULL,'{"reason":{"code":"done","text":"all well","figures":{}},"snapshot_id":7}','{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20);
CREATE TABLE waiting_plans (
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	plan_id TEXT NOT NULL, 
	waiting TEXT NOT NULL, 
	CONSTRAINT pk_waiting_plans PRIMARY KEY (catalog, table_uuid, kind)
);
CREATE TABLE worker_access (
	catalog TEXT NOT NULL, 
	root_digest TEXT NOT NULL, 
	record TEXT NOT NULL, 
	decided_at BIGINT NOT NULL, 
	CONSTRAINT pk_worker_access PRIMARY KEY (catalog, root_digest)
);
CREATE INDEX ix_tasks_queue ON tasks (resource_group, ranked_at, task_id) WHERE state IN ('queued');
CREATE INDEX ix_tasks_state ON tasks (state, task_id);
CREATE INDEX ix_tasks_table ON tasks (catalog, table_uuid, task_id);
CREATE UNIQUE INDEX uq_tasks_active_table ON tasks (catalog, table_uuid) WHERE state IN ('committed', 'in_doubt', 'running');
CREATE UNIQUE INDEX uq_tasks_live_kind ON tasks (catalog, table_uuid, kind) WHERE state IN ('committed', 'in_doubt', 'queued', 'running');
CREATE INDEX ix_tables_due ON tables (next_look_at) WHERE dropped_at IS NULL;
CREATE UNIQUE INDEX uq_tables_name ON tables (name_digest) WHERE dropped_at IS NULL;
CREATE INDEX ix_plans_table ON plans (catalog, table_uuid, planned_at, plan_id);
CREATE INDEX ix_inbox_waiting ON inbox (event_id) WHERE done_at IS NULL;
CREATE INDEX ix_tasks_ended ON tasks (state, updated_at, task_id) WHERE state IN ('cancelled', 'failed', 'succeeded', 'superseded');
CREATE INDEX ix_tasks_shareable ON tasks (resource_group, ranked_at, task_id, shareable_bytes) WHERE state IN ('queued') AND shareable_bytes IS NOT NULL;
CREATE UNIQUE INDEX uq_deletion_runs_open ON deletion_runs (catalog, table_uuid) WHERE is_open;
CREATE INDEX ix_deletion_runs_table ON deletion_runs (catalog, table_uuid, run_id);
CREATE INDEX ix_deletion_intents_held ON deletion_intents (run_id) WHERE state IN ('quarantined', 'unknown');
CREATE INDEX ix_deletion_intents_state ON deletion_intents (run_id, state, number);
CREATE INDEX ix_kept_of_tasks_age ON kept_of_tasks (kept_at, task_id);
CREATE UNIQUE INDEX uq_waiting_plans_plan ON waiting_plans (plan_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('inbox',1);
COMMIT;
