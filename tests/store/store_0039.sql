BEGIN TRANSACTION;
CREATE TABLE answers (
	name TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	until BIGINT NOT NULL, 
	answer TEXT, 
	CONSTRAINT pk_answers PRIMARY KEY (name)
);
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
INSERT INTO "attempts" VALUES('task-queued',4,'optimizer-1',10,'failed',1700000000000,1700000000000,NULL,NULL);
CREATE TABLE audit (
	number BIGINT NOT NULL, 
	at BIGINT NOT NULL, 
	principal TEXT NOT NULL, 
	action TEXT NOT NULL, 
	resource TEXT NOT NULL, 
	detail TEXT NOT NULL, 
	previous TEXT NOT NULL, 
	hash TEXT NOT NULL, 
	CONSTRAINT pk_audit PRIMARY KEY (number)
);
INSERT INTO "audit" VALUES(1,1700000000000,'"icewright"','task.queued','"task task-0"','{"table":"lake.ns.t0","kind":"rewrite_data_files","plan":"plan-1","table_id":"lake:00000000-0000-4000-8000-000000000000","because":"small-files"}','0000000000000000000000000000000000000000000000000000000000000000','6e4567ffd6aa79ea3e05f0ae33d65ca895b807c0086695812db440f8211ce403');
INSERT INTO "audit" VALUES(2,1700000000000,'"icewright"','task.cancelled','"task task-0"','{"table":"lake.ns.t0","kind":"rewrite_data_files","plan":"plan-1","table_id":"lake:00000000-0000-4000-8000-000000000000","because":"small-files"}','6e4567ffd6aa79ea3e05f0ae33d65ca895b807c0086695812db440f8211ce403','0014bfe3300b8c58ddecd7d5f001f907a0567257542403fa069bc37836848923');
INSERT INTO "audit" VALUES(3,1700000000000,'"icewright"','task.queued','"task task-waiting-0"','{"table":"lake.ns.t0","kind":"rewrite_data_files","plan":"plan-1","table_id":"lake:00000000-0000-4000-8000-000000000000","because":"small-files"}','0014bfe3300b8c58ddecd7d5f001f907a0567257542403fa069bc37836848923','34f4c6b74a2e8134a880cf31013339f17a2440d56041fb7ecfb0516f733540f9');
INSERT INTO "audit" VALUES(4,1700000000000,'"icewright"','a','"x"','{}','34f4c6b74a2e8134a880cf31013339f17a2440d56041fb7ecfb0516f733540f9','b0a7a02d7202f0226fc31fcd395c82a7bcb92da751d06960cb7d34cfa618cfc0');
INSERT INTO "audit" VALUES(5,1700000000000,'"icewright"','deletion.begun','"run run-0"','{"table":"lake.ns.`quo''te\"s; DROP TABLE tasks; --`","table_id":"lake:00000000-0000-4000-8000-000000000010","files":1,"plan":"plan-1","plan_hash":"abc","cause":"orphan"}','b0a7a02d7202f0226fc31fcd395c82a7bcb92da751d06960cb7d34cfa618cfc0','3bb0b8828002391bcbec4aa0161bb239104d413cea4693531024415758684e2b');
INSERT INTO "audit" VALUES(6,1700000000000,'"icewright"','files.purged','"run run-0"','{"files":1,"bytes":10,"paths":"b4862c1786dde9dc14bb68587d3920ed6e1adb9e592d10f66f64fdf175b40191"}','3bb0b8828002391bcbec4aa0161bb239104d413cea4693531024415758684e2b','62f46211d21e181db33d972529193a682f1ae2b63a4394ccb58d6e765d0888e0');
INSERT INTO "audit" VALUES(7,1700000000000,'"icewright"','deletion.begun','"run run-open-0"','{"table":"lake.ns.`quo''te\"s; DROP TABLE tasks; --`","table_id":"lake:00000000-0000-4000-8000-000000000020","files":0,"plan":"plan-1","plan_hash":"abc","cause":"orphan"}','62f46211d21e181db33d972529193a682f1ae2b63a4394ccb58d6e765d0888e0','2ef86864d840bc435e96954d8ab5e802fc5a5436185082a3284339aac10798b4');
INSERT INTO "audit" VALUES(8,1700000000000,'"icewright"','plan.approved','"plan hash-0"','{"approved_by":"Ada","plan_id":"plan-0","kind":"expire_snapshots"}','2ef86864d840bc435e96954d8ab5e802fc5a5436185082a3284339aac10798b4','cf44bcc303c43813cb6d6d5e40667f0b65b405d1cbfadaa7395be54f6275be9f');
INSERT INTO "audit" VALUES(9,1700000000000,'"icewright"','policies.applied','"revision 1"','{"rules":0,"applied_by":"ada","note":""}','cf44bcc303c43813cb6d6d5e40667f0b65b405d1cbfadaa7395be54f6275be9f','0f223120f89f9fa7c247c47e81ec5b33ae0df93aa377590f43d737d14565e081');
INSERT INTO "audit" VALUES(10,1700000000000,'"icewright"','policies.applied','"revision 2"','{"rules":0,"applied_by":"ada","note":""}','0f223120f89f9fa7c247c47e81ec5b33ae0df93aa377590f43d737d14565e081','f44db47713a37b1265f4aeab6978867b8767c8d63bec6521dc3f81f59696fd03');
INSERT INTO "audit" VALUES(11,1700000000000,'"icewright"','token.created','"token ada"','{"grants":"approver on *","expires_at":0}','f44db47713a37b1265f4aeab6978867b8767c8d63bec6521dc3f81f59696fd03','57ac048391c40f5a73feeb4dbfbbed63c34d553854e861334dc6fe2afbc04ff6');
INSERT INTO "audit" VALUES(12,1700000000000,'"icewright"','queue.paused','"group nightly"','{"why":"an outage"}','57ac048391c40f5a73feeb4dbfbbed63c34d553854e861334dc6fe2afbc04ff6','a2c210f2b0c79b2604794e72bb0d5e44e96bd1655fcf3f033fe17100bb7e8e30');
CREATE TABLE audit_start (
	number BIGINT NOT NULL, 
	hash TEXT NOT NULL, 
	CONSTRAINT pk_audit_start PRIMARY KEY (number)
);
CREATE TABLE claims (
	catalog TEXT NOT NULL, 
	name_digest TEXT NOT NULL, 
	claim TEXT NOT NULL, 
	CONSTRAINT pk_claims PRIMARY KEY (catalog, name_digest)
);
INSERT INTO "claims" VALUES('lake','681ab1328c45741dded6dc6757788c6c99055f37bfb685dfeb9135aaa1500281','{"claim":{"name":{"catalog":"lake","namespace":["db"],"name":"one"},"uuid":"u","roots":["s3://b/wh/1/"],"location":"s3://b/wh/1/","reaches":[],"unplaced":[],"ambiguous":[],"gc_enabled":true,"is_clone":false,"is_gone":false,"linked":[]},"metadata_location":"s3://b/wh/1/metadata/1.json","seen_at":1,"places":[],"snapshots":"","is_complete":false,"read_since":0,"lost_at":null,"lost_by":"","gone_at":null,"gone":[]}');
CREATE TABLE counters (
	name TEXT NOT NULL, 
	value BIGINT NOT NULL, 
	CONSTRAINT pk_counters PRIMARY KEY (name)
);
INSERT INTO "counters" VALUES('fencing_token',10);
INSERT INTO "counters" VALUES('server_epoch',0);
INSERT INTO "counters" VALUES('feed_forgotten',0);
CREATE TABLE deletion_approvals (
	plan_hash TEXT NOT NULL, 
	approval TEXT NOT NULL, approved_at BIGINT DEFAULT '0' NOT NULL, catalog TEXT, table_uuid TEXT, plan_id TEXT, 
	CONSTRAINT pk_deletion_approvals PRIMARY KEY (plan_hash)
);
INSERT INTO "deletion_approvals" VALUES('hash-0','{"plan_hash":"hash-0","approved_by":"Ada","approved_at":1700000000000,"plan":{"plan_id":"plan-0","table_id":{"catalog":"lake","uuid":"00000000-0000-4000-8000-000000000001"},"table_name":{"catalog":"lake","namespace":["ns"],"name":"quo''te\"s; DROP TABLE tasks; --"},"kind":"expire_snapshots","because":{"code":"beyond-budget","text":"new\nline\r\t","figures":{"files":0}},"roots":[]}}',1700000000000,'lake','00000000-0000-4000-8000-000000000001','plan-0');
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
INSERT INTO "deletion_intents" VALUES('run-0',0,'purged',2,10,'{"run_id":"run-0","number":0,"object":{"path":"s3://b/0back`tick","size_bytes":10,"modified_at":5,"etag":"etag","version_id":"v"},"first_seen_at":4,"state":"purged","version":2,"changed_at":1700000000000,"step":null,"checked":null,"held":null,"held_at":null,"why":null}');
CREATE TABLE deletion_runs (
	run_id TEXT NOT NULL, 
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	plan_hash TEXT NOT NULL, 
	is_open BOOLEAN NOT NULL, 
	next_at BIGINT NOT NULL, 
	run TEXT NOT NULL, changed_at BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_deletion_runs PRIMARY KEY (run_id)
);
INSERT INTO "deletion_runs" VALUES('run-0','lake','00000000-0000-4000-8000-000000000010','abc',0,2,'{"run_id":"run-0","plan_id":"plan-1","plan_hash":"abc","table_id":{"catalog":"lake","uuid":"00000000-0000-4000-8000-000000000010"},"table_name":{"catalog":"lake","namespace":["ns"],"name":"quo''te\"s; DROP TABLE tasks; --"},"metadata_location":"s3://b/v1.json","cause":"orphan","table_bytes":1000000000000000,"epoch":0,"fencing_token":7,"approved_by":null,"begun_at":1,"next_at":2,"is_open":false,"grace_ms":null}',1700000000000);
INSERT INTO "deletion_runs" VALUES('run-open-0','lake','00000000-0000-4000-8000-000000000020','abc',1,2,'{"run_id":"run-open-0","plan_id":"plan-1","plan_hash":"abc","table_id":{"catalog":"lake","uuid":"00000000-0000-4000-8000-000000000020"},"table_name":{"catalog":"lake","namespace":["ns"],"name":"quo''te\"s; DROP TABLE tasks; --"},"metadata_location":"s3://b/v1.json","cause":"orphan","table_bytes":1000000000000000,"epoch":0,"fencing_token":7,"approved_by":null,"begun_at":1,"next_at":2,"is_open":true,"grace_ms":null}',1700000000000);
CREATE TABLE event_cursors (
	name TEXT NOT NULL, 
	position BIGINT NOT NULL, 
	CONSTRAINT pk_event_cursors PRIMARY KEY (name)
);
INSERT INTO "event_cursors" VALUES('feed-of-hive',7);
CREATE TABLE feed (
	sequence INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	at BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	parts TEXT NOT NULL, 
	once TEXT, 
	fact TEXT NOT NULL, 
	CONSTRAINT uq_feed_once UNIQUE (once)
);
INSERT INTO "feed" VALUES(1,1700000000000,'started','["lake","ns","t0"]',NULL,'{"fact":"started","catalog":"lake","reason":{"code":"claimed","text":"try 4, by optimizer-1","figures":{"fencing_token":10}},"table_id":{"catalog":"lake","uuid":"00000000-0000-4000-8000-000000000000"},"table_name":{"catalog":"lake","namespace":["ns"],"name":"t0"},"task_id":"task-queued","plan_id":"plan-1","action":"rewrite_data_files","attempt":4}');
INSERT INTO "feed" VALUES(2,1700000000000,'failed','["lake","ns","t0"]',NULL,'{"fact":"failed","catalog":"lake","reason":{"code":"done","text":"all well","figures":{}},"table_id":{"catalog":"lake","uuid":"00000000-0000-4000-8000-000000000000"},"table_name":{"catalog":"lake","namespace":["ns"],"name":"t0"},"task_id":"task-queued","plan_id":"plan-1","action":"rewrite_data_files","attempt":4}');
INSERT INTO "feed" VALUES(3,1700000000000,'queued','["lake","ns","t0"]',NULL,'{"fact":"queued","catalog":"lake","reason":{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}},"table_id":{"catalog":"lake","uuid":"00000000-0000-4000-8000-000000000000"},"table_name":{"catalog":"lake","namespace":["ns"],"name":"t0"},"task_id":"task-0","plan_id":"plan-1","action":"rewrite_data_files","attempt":0}');
INSERT INTO "feed" VALUES(4,1700000000000,'cancelled','["lake","ns","t0"]',NULL,'{"fact":"cancelled","catalog":"lake","reason":{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}},"table_id":{"catalog":"lake","uuid":"00000000-0000-4000-8000-000000000000"},"table_name":{"catalog":"lake","namespace":["ns"],"name":"t0"},"task_id":"task-0","plan_id":"plan-1","action":"rewrite_data_files","attempt":0}');
INSERT INTO "feed" VALUES(5,1700000000000,'queued','["lake","ns","t0"]',NULL,'{"fact":"queued","catalog":"lake","reason":{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}},"table_id":{"catalog":"lake","uuid":"00000000-0000-4000-8000-000000000000"},"table_name":{"catalog":"lake","namespace":["ns"],"name":"t0"},"task_id":"task-waiting-0","plan_id":"plan-1","action":"rewrite_data_files","attempt":0}');
INSERT INTO "feed" VALUES(6,1700000000000,'paused','[]',NULL,'{"fact":"paused","catalog":"","reason":{"code":"paused","text":"group nightly is paused, by icewright: an outage","figures":{"since":1700000000000,"part":"group nightly","by":"icewright"}},"table_id":null,"table_name":null,"task_id":null,"plan_id":null,"action":null,"attempt":null}');
CREATE TABLE halts (
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	halt TEXT NOT NULL, 
	CONSTRAINT pk_halts PRIMARY KEY (kind, name, table_uuid)
);
INSERT INTO "halts" VALUES('group','nightly','','{"part":{"kind":"group","name":"nightly","table_id":null},"state":"paused","why":"an outage","by":"icewright","since":1700000000000}');
CREATE TABLE icewright_schema (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT icewright_schema_pkc PRIMARY KEY (version_num)
);
INSERT INTO "icewright_schema" VALUES('0039');
CREATE TABLE "inbox" (
	event_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name_digest TEXT NOT NULL, 
	snapshot_id BIGINT, 
	event TEXT NOT NULL, 
	received_at BIGINT NOT NULL, 
	done_at BIGINT, 
	channel TEXT DEFAULT 'http' NOT NULL, 
	committed_at BIGINT, tries BIGINT DEFAULT '0' NOT NULL, tried_at BIGINT, trouble TEXT, reporter TEXT, catalog TEXT, parked_at BIGINT, 
	CONSTRAINT uq_inbox_snapshot UNIQUE (name_digest, snapshot_id)
);
INSERT INTO "inbox" VALUES(1,'7e1176de3abd8c899d258f06ab71f0e86260a374a86e01ee88be85ea99ccde62',7,'{"table_name":{"catalog":"lake","namespace":["ns"],"name":"t1"},"snapshot_id":7,"table_uuid":null,"operation":null,"added_data_files":null,"added_records":null}',1700000000000,NULL,'http',NULL,0,NULL,NULL,'','lake',NULL);
INSERT INTO "inbox" VALUES(2,'400b18fda259fca4cc8e4eea8eb180968ac1d93d0516bc89f709d3618d0aa7be',0,'{"table_name":{"catalog":"lake","namespace":["db"],"name":"t"},"snapshot_id":0,"table_uuid":null,"operation":null,"added_data_files":null,"added_records":null}',1700000000000,1700000000000,'http',NULL,0,NULL,NULL,'','lake',NULL);
INSERT INTO "inbox" VALUES(3,'400b18fda259fca4cc8e4eea8eb180968ac1d93d0516bc89f709d3618d0aa7be',100,'{"table_name":{"catalog":"lake","namespace":["db"],"name":"t"},"snapshot_id":100,"table_uuid":null,"operation":null,"added_data_files":null,"added_records":null}',1700000000000,NULL,'http',NULL,0,NULL,NULL,'','lake',NULL);
CREATE TABLE kept_of_tasks (
	task_id TEXT NOT NULL, 
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	kept_at BIGINT NOT NULL, 
	content BLOB NOT NULL, 
	CONSTRAINT pk_kept_of_tasks PRIMARY KEY (task_id)
);
INSERT INTO "kept_of_tasks" VALUES('task-0','lake','u',1700000000000,X'78');
CREATE TABLE login_codes (
	digest TEXT NOT NULL, 
	principal TEXT NOT NULL, 
	until BIGINT NOT NULL, name TEXT DEFAULT '""' NOT NULL, conditions TEXT DEFAULT '[]' NOT NULL, is_program BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_login_codes PRIMARY KEY (digest)
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
INSERT INTO "manifests" VALUES('lake','00000000-0000-4000-8000-000000000050','180ba6e69017faaaf2bedceafd5b1dd6b3ef5cc3bb6ce8b27ea62c0706a9dafc','s3://b/m1.avro',101,-1,'data',X'789C6590DD6E83300C85DFC5D7E94A48FFC6AB508402B82B2A243431681DE2DDE784769BB44B1FDB9FCFF10C377C4036C3A0E90A1978956DB7D5B6976F7A72160474683EE85A560F420F994CA400DD34D894DEE8C15F2D956D03D9462E026A6B080D31A5D1A47977D08E5A6AADE1CD3C9FC10F58C7F144C0A4BB3110213F833E43018B9899301AF2C14E209497B60B234AACE5D3834A78DD616D5D132B01BEFDC2B8558DF50D295EDBEF45AE04CF1645C1DE2ED6F57A45B3ABFB886C53B13E581F1D960D7648F83AC9D02884CE843559F747E4F03FE759C3FBA8BB961EFF116E5C936F8E9CED29A7ABDD579834499668D033064D8DA519FB0A5DD9EB4F7E37EBBF6F0E2C257607290FA743224FBBF4A84EC7F76457847FF4766263CF2B92A11CAED375A8F262F906C902A229');
CREATE TABLE messages (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	message_id TEXT NOT NULL, 
	receiver TEXT NOT NULL, 
	state TEXT NOT NULL, 
	composed_at BIGINT NOT NULL, 
	first_at BIGINT NOT NULL, 
	next_at BIGINT NOT NULL, 
	attempts INTEGER NOT NULL, 
	problem TEXT NOT NULL, 
	ended_at BIGINT, 
	message TEXT NOT NULL, 
	CONSTRAINT uq_messages_id UNIQUE (message_id)
);
INSERT INTO "messages" VALUES(1,'msg_0','team','sent',1700000000000,5,1700000000000,0,'""',1700000000000,'{"message_id":"msg_0","receiver":"team","group":"me","mentions":[{"told":{"sequence":0,"at":5,"fact":{"fact":"succeeded","catalog":"lake","reason":{"code":"verified","text":"12 files became 1","figures":{"data_files_fewer":11,"share":0.5,"executors":"merge"}},"table_id":{"catalog":"lake","uuid":"00000000-0000-4000-8000-000000000001"},"table_name":{"catalog":"lake","namespace":["db"],"name":"t"},"task_id":"task-1","plan_id":"plan-1","action":"rewrite_data_files","attempt":1}},"owner":"me","times":2}],"counts":{"succeeded":4},"tables":3,"through":0,"first_at":5,"is_behind":true}');
INSERT INTO "messages" VALUES(2,'msg_1','team','dead',1700000000000,5,1700000000000,1,'"away"',1700000000000,'{"message_id":"msg_1","receiver":"team","group":"me","mentions":[{"told":{"sequence":1,"at":5,"fact":{"fact":"succeeded","catalog":"lake","reason":{"code":"verified","text":"12 files became 1","figures":{"data_files_fewer":11,"share":0.5,"executors":"merge"}},"table_id":{"catalog":"lake","uuid":"00000000-0000-4000-8000-000000000001"},"table_name":{"catalog":"lake","namespace":["db"],"name":"t"},"task_id":"task-1","plan_id":"plan-1","action":"rewrite_data_files","attempt":1}},"owner":"me","times":2}],"counts":{"succeeded":4},"tables":3,"through":1,"first_at":5,"is_behind":true}');
INSERT INTO "messages" VALUES(3,'msg_2','team','waiting',1700000000000,5,1700000000000,0,'""',NULL,'{"message_id":"msg_2","receiver":"team","group":"me","mentions":[{"told":{"sequence":2,"at":5,"fact":{"fact":"succeeded","catalog":"lake","reason":{"code":"verified","text":"12 files became 1","figures":{"data_files_fewer":11,"share":0.5,"executors":"merge"}},"table_id":{"catalog":"lake","uuid":"00000000-0000-4000-8000-000000000001"},"table_name":{"catalog":"lake","namespace":["db"],"name":"t"},"task_id":"task-1","plan_id":"plan-1","action":"rewrite_data_files","attempt":1}},"owner":"me","times":2}],"counts":{"succeeded":4},"tables":3,"through":2,"first_at":5,"is_behind":true}');
CREATE TABLE optimizers (
	optimizer_id TEXT NOT NULL, 
	hello TEXT NOT NULL, 
	seen_at BIGINT NOT NULL, 
	CONSTRAINT pk_optimizers PRIMARY KEY (optimizer_id)
);
INSERT INTO "optimizers" VALUES('optimizer-0','{"protocol_version":12,"optimizer_id":"optimizer-0","version":"0.1.0","resource_group":"default","slots":1,"catalogs":["lake"],"spark_version":"4.1.4","iceberg_version":"1.12.0","workers":null,"cores":null,"memory_bytes":null,"is_resident":true,"queues":["normal","large"]}',1700000000000);
CREATE TABLE orphan_passes (
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	begun BIGINT NOT NULL, 
	finished_number BIGINT NOT NULL, 
	finished TEXT, 
	CONSTRAINT pk_orphan_passes PRIMARY KEY (catalog, table_uuid)
);
INSERT INTO "orphan_passes" VALUES('lake','00000000-0000-4000-8000-000000000050',1,0,NULL);
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
INSERT INTO "partitions" VALUES('lake','00000000-0000-4000-8000-000000000050',0,'232ff87c804fd229547210e3793edc121829ce82d3acf170476273b2a7773f23','["a"]','{"partition":{"spec_id":0,"values":"[\"a\"]"},"path":"p=[\"a\"]","counts":{"data_files":3,"data_bytes":0,"records":0,"sizes":{"buckets":{}},"formats":{},"position_delete_files":0,"deletion_vectors":0,"deleted_records":0,"equality_delete_files":0,"runs":[[4611686018427387904,{"files":1,"size_bytes":9}]]},"written_at":500}');
CREATE TABLE plans (
	plan_id TEXT NOT NULL, 
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	planned_at BIGINT NOT NULL, 
	"plan" BLOB NOT NULL, asked_by TEXT, 
	CONSTRAINT pk_plans PRIMARY KEY (plan_id)
);
INSERT INTO "plans" VALUES('plan-0','lake','00000000-0000-4000-8000-000000000001',0,X'789CC554DB6EE23010FD95CACFA1245CA40A69BF84226B1206B070ECAC2FD02EE2DF77C68E8176AB7DD8876D1E9278E6CC998B8F7D11830623D556ACD2DFA4169508D06A4CB68BE82080B67B726B382239634CE07A7C26E9B5E0D74B598E4F23AE85CB408F5FB2B1C30FD091772D8C179B6C224048E1DEC0E00F36A46A9655AAD1E0564210ABBA12BDDD321662B044065D50964856EB8B382AC3653A3C3B15506E29B1DC298D9E702D78949F997D77C01ED28A88F7CEC62133A5DF621FC005C559B81B3F60571C27D091C85762FD2A6675339FD4CDABD8700BB71039403810A2B7261C7E8C202A2797C5A946809FAFA6D3765A3F53E8CF8881305EFD42D9BE07063694CE6167DD5676361A9AC4AC12A9418F04371DCD3BF62D3AB19A6776B9B3AEE791893BE34E391FA4B3E7D481895A13096A4C29D69B6BF5B99CE65BCB2161E01B76B4D18E47886ECFF2C908592648201BC31043B13437C36DAF989AD902104506CAC776960D95AFF1849A55CADF742634BC13D33DDC21F8AC822E6BD0F7A0F5A4482CE01BF7B7A89F92FDA9D8776A1F1DA7B9946D5FF0F880F441327A5E56591D145AF47125099DD06D55178A48FE41825F0A6FA4BD1F13F19FFB4A50D922E9017344B6C02EB05C68F7CEA0822451297D1FFD5876565B4A59CAE7088D70A2BF19B7ED9081E3A8FE7623DC171FAA7930DF4B52E641608CFA43721931EA89AEC6723E68F5527F94524557A266A55111E883A2638163A704B4F628610FCAA4FB2EE35DBC69BD57FB3461537CE08F483DEE407BBCFE06590AEEB6',NULL);
INSERT INTO "plans" VALUES('plan-50','lake','00000000-0000-4000-8000-000000000050',1000,X'789CC554DB6EE23010FD95CACFA1245CA40A69BF84226B1206B070ECAC2FD02EE2DF77C68E8176AB7DD8872D0F211E9F3973667C9C8B183418A9B66295DE26CB5A542240AB31052FA28300DAEE695FC3116933C684AEC7DF243D16FC7829CBFC23AA6BE132D0E3976CBCE107E868772D8C179B1C2240C8F9DEC0E00F362439CB2AA934B89510C4AAA12A95E8ED96F110832542E882B244B45A5FC4511996EAF0EC5440B9A5E272A7347AC2B5E0517E26F7DD017B482B22DE3B1B87CC945E4B7C00171457E18EFC805DD938818E44BE12EB5731AB9BF9A46E5EC586BBB8A5C801C28110BD35E1F06304919C2C8B4B8D003F5F4DA7EDB47EA6D49F110361BCFA85B27D0F0C6CA89CC3CEBAADEC6C34348C592552831E096E3A9A79EC5B746235CFEC72675DCF531377C69D723E4867CFA90313B52612D4984AAC37D7EAB39CE65BE59039F00D3B3A68C72344B7670B65842C1324908D6188A1449A5BE076564CCD6C01882203E5633BCB86E46B3CA166A7F2FF84EF85867762BAA73B049F5DD0650FFA1EB49E148B057CE3FE16F5538A3F95F84EEDA3E3329772EC0B1E1F903FC846CFCB2ABB83528B3FAE64A113BAADEA4231C93F58F04BE38DB4F76B22FE735F092A5B243F60CEC811D805B60B9DDE195490642AA5EFA31F6567B7A592453E67688413BDCDB86D870C1C47F5B72FC27DF141CD43F82E4999078331EA0FCB65C4E8A7457DBB1FB47AA93F5AA9A2CFA266A79108F441D1B5C0B153025A7B94B00765D2272FE35DBC79BD57FB346153F6C01F917ADC81F678FD0D77FBEFB4',NULL);
CREATE TABLE policy_revisions (
	number BIGINT NOT NULL, 
	revision BLOB NOT NULL, replaced_at BIGINT, 
	CONSTRAINT pk_policy_revisions PRIMARY KEY (number)
);
INSERT INTO "policy_revisions" VALUES(1,X'789CAB56CA2BCD4D4A2D52B232D4512AC8CFC94CCE4C2D56B2AA562A2ACD0131A2637594D28BF24B0BC0EC5A1DA5C482829CCCD494F8C412A016730304404825552A592925A6242AE928E5E597A402394AB500F4932094',1700000000000);
INSERT INTO "policy_revisions" VALUES(2,X'789CAB56CA2BCD4D4A2D52B232D2512AC8CFC94CCE4C2D56B2AA562A2ACD0131A2637594D28BF24B0BC0EC5A1DA5C482829CCCD494F8C412252B43730304404825552A592925A6242AE928E5E597A402394AB500F4F12095',NULL);
CREATE TABLE probes (
	catalog TEXT NOT NULL, 
	root_digest TEXT NOT NULL, 
	request TEXT NOT NULL, 
	wanted_at BIGINT NOT NULL, 
	optimizer_id TEXT, 
	asked_at BIGINT, 
	CONSTRAINT pk_probes PRIMARY KEY (catalog, root_digest)
);
CREATE TABLE prunings (
	kind TEXT NOT NULL, 
	pruned_at BIGINT NOT NULL, 
	removed BIGINT NOT NULL, 
	left_count BIGINT NOT NULL, 
	oldest_at BIGINT, 
	CONSTRAINT pk_prunings PRIMARY KEY (kind)
);
CREATE TABLE receivers (
	name TEXT NOT NULL, 
	position BIGINT NOT NULL, 
	looked_at BIGINT NOT NULL, 
	sent BIGINT NOT NULL, 
	failed BIGINT NOT NULL, 
	given_up BIGINT NOT NULL, 
	CONSTRAINT pk_receivers PRIMARY KEY (name)
);
INSERT INTO "receivers" VALUES('team',1,1700000000000,1,1,1);
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
INSERT INTO "runs" VALUES('lake','00000000-0000-4000-8000-000000000050',7,'level-1','hilbert(3,7)',5);
CREATE TABLE servers (
	server_id TEXT NOT NULL, 
	url TEXT NOT NULL, 
	version TEXT NOT NULL, 
	epoch BIGINT, 
	started_at BIGINT NOT NULL, 
	seen_at BIGINT NOT NULL, 
	CONSTRAINT pk_servers PRIMARY KEY (server_id)
);
CREATE TABLE sessions (
	digest TEXT NOT NULL, 
	principal TEXT NOT NULL, 
	begun_at BIGINT NOT NULL, 
	seen_at BIGINT NOT NULL, name TEXT DEFAULT '""' NOT NULL, conditions TEXT DEFAULT '[]' NOT NULL, is_program BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_sessions PRIMARY KEY (digest)
);
CREATE TABLE submitters (
	submitter_id TEXT NOT NULL, 
	submitter TEXT NOT NULL, 
	asked_at BIGINT NOT NULL, 
	CONSTRAINT pk_submitters PRIMARY KEY (submitter_id)
);
INSERT INTO "submitters" VALUES('submitter-1','{"submitting":{"submitter_id":"submitter-1","host":"edge-1","applications":0,"applications_max":4},"resource_group":"default","catalogs":["lake"],"queues":["normal","large"],"cores":null,"memory_bytes":null}',1795661418352);
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
	dropped_at BIGINT, marks TEXT, reporting TEXT, commits_told BIGINT DEFAULT '0' NOT NULL, commits_sweep_only BIGINT DEFAULT '0' NOT NULL, properties BLOB, storage_root TEXT, revision BIGINT DEFAULT '1' NOT NULL, considered TEXT, unparked_at BIGINT, listed TEXT, 
	CONSTRAINT pk_tables PRIMARY KEY (catalog, table_uuid)
);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000000','0afbe531da0183c915de265db6be35de9566dca51d2d4fbe3f1baa20274fa297','{"catalog":"lake","namespace":["ns"],"name":"t0"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,1,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000001','7e1176de3abd8c899d258f06ab71f0e86260a374a86e01ee88be85ea99ccde62','{"catalog":"lake","namespace":["ns"],"name":"t1"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,'plan-0',NULL,NULL,NULL,NULL,0,0,NULL,NULL,2,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000002','eb7d85603975deff49919f01b4b62224b2b2e7eb1a6bc28bbb07840b87275bb9','{"catalog":"lake","namespace":["ns"],"name":"t2"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,1,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000003','a0abd6519eb17858f247aad9432204806a9af39ae1c6dda78c8fef897b1d5030','{"catalog":"lake","namespace":["ns"],"name":"t3"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,1,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000004','d59bb18d398451215e45a05ad383bc90e522bd39c096ba311b8f8578743ab54f','{"catalog":"lake","namespace":["ns"],"name":"t4"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,1,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000005','b8ae2f05ddd42520f988c0caaf5d74cf27407d0b8f44eba21223b8de8f251ff5','{"catalog":"lake","namespace":["ns"],"name":"t5"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,1,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000006','faa81e97202b80f240a6ea067c750fb407e14cd4a1dedf25190cdaffdf81371c','{"catalog":"lake","namespace":["ns"],"name":"t6"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,1,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000007','cb6685198c776f2ccf3fd2e5491f31cf3b34ff794a79cff539e4ef0e6babcc75','{"catalog":"lake","namespace":["ns"],"name":"t7"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,1,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000030','c39db374da91c868b98d9152cea95711d239816353e1b4d3c292dca8dedd37c7','{"catalog":"lake","namespace":["ns"],"name":"t30"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,1700000000000,NULL,NULL,0,0,NULL,NULL,1,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000040','f02ef24b824ab9017121f362d318cc9a2e674de5c7ff688f8786e68627d82122','{"catalog":"lake","namespace":["db"],"name":"there-0"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,NULL,NULL,NULL,0,0,NULL,NULL,1,NULL,NULL,NULL);
INSERT INTO "tables" VALUES('lake','00000000-0000-4000-8000-000000000050','852c48a4ff9974a71b0c658331f50a359010cb2420c1cad1ea03fadda5fe0782','{"catalog":"lake","namespace":["ns"],"name":"t50"}','s3://b/v1.json',9223372036854775807,2,1000,900,60000,2000,NULL,NULL,1700000000000,NULL,NULL,0,0,NULL,NULL,1,NULL,NULL,NULL);
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
INSERT INTO "task_actions" VALUES('task-0','4063474f30717439da1d51729ccf22839e3b0f18889a4cefe0b70d719ade4291',X'789CC591DD6E84201046DF65AEDD2A6B7A43D2273186A08E2B298285617F6AF6DD3BEABADDF4057A050C87331F30C3A7711D480878098650759AB4EA8DC50819343AA28A4E4F71F0A40C732283D80E38EA755564700A3E4D1164356FD3BD3EE940868C7720678813B6FBC659DBC47209550DF7174E4D9A062E8FDED1F0712C4479280467D8B22CFE07104B99E74D5EBCF1D1AF84C44C34DFA89A1B2DA0E01E015B1F3AD5FAE408E43183F5561119772D2A97C60603C872B3ABDE87513308BFC6DE84482AF8CB1ADB256B598216D716557DCFFEC611FF1AA7CE00AFD826F26179420C27849D50FB0B32E4134D89F68A78169E1FB4A8171B69566CA07ABDCEBBE0F816CF68B9CF3A1E0AEE64F58D4D8FE33F1F32CD17');
INSERT INTO "task_actions" VALUES('task-waiting-0','4063474f30717439da1d51729ccf22839e3b0f18889a4cefe0b70d719ade4291',X'789CC591DD6E84201046DF65AEDD2A6B7A43D2273186A08E2B298285617F6AF6DD3BEABADDF4057A050C87331F30C3A7711D480878098650759AB4EA8DC50819343AA28A4E4F71F0A40C732283D80E38EA755564700A3E4D1164356FD3BD3EE940868C7720678813B6FBC659DBC47209550DF7174E4D9A062E8FDED1F0712C4479280467D8B22CFE07104B99E74D5EBCF1D1AF84C44C34DFA89A1B2DA0E01E015B1F3AD5FAE408E43183F5561119772D2A97C60603C872B3ABDE87513308BFC6DE84482AF8CB1ADB256B598216D716557DCFFEC611FF1AA7CE00AFD826F26179420C27849D50FB0B32E4134D89F68A78169E1FB4A8171B69566CA07ABDCEBBE0F816CF68B9CF3A1E0AEE64F58D4D8FE33F1F32CD17');
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
INSERT INTO "task_history" VALUES('task-queued',8,'running',4,1700000000000,'{"code":"claimed","text":"try 4, by optimizer-1","figures":{"fencing_token":10}}');
INSERT INTO "task_history" VALUES('task-queued',9,'failed',4,1700000000000,'{"code":"done","text":"all well","figures":{}}');
INSERT INTO "task_history" VALUES('task-0',1,'queued',0,1700000000000,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}');
INSERT INTO "task_history" VALUES('task-0',2,'cancelled',0,1700000000000,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}');
INSERT INTO "task_history" VALUES('task-waiting-0',1,'queued',0,1700000000000,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}');
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
	outcome TEXT, figures TEXT, shareable_bytes BIGINT, lane TEXT DEFAULT 'normal/normal/' NOT NULL, held_cores BIGINT, held_memory_bytes BIGINT, held_resident BOOLEAN, 
	CONSTRAINT pk_tasks PRIMARY KEY (task_id), 
	CONSTRAINT ck_tasks_lease CHECK ((state IN ('running', 'in_doubt')) = (lease_fencing_token IS NOT NULL) AND (lease_fencing_token IS NULL) = (lease_optimizer_id IS NULL) AND (lease_fencing_token IS NULL) = (lease_expires_at IS NULL))
);
INSERT INTO "tasks" VALUES('task-queued','lake','00000000-0000-4000-8000-000000000000','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t0"}','plan-1','default',0,1700000000000,3,'failed',9,4,1700000000000,1700000000000,1700000000000,NULL,NULL,NULL,0,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}',NULL,'{"reason":{"code":"done","text":"all well","figures":{}},"snapshot_id":7,"cause":null}','{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20,'normal/normal/',NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('task-running','lake','00000000-0000-4000-8000-000000000001','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t1"}','plan-1','default',0,1700000000000,3,'running',2,1,1700000000000,1700000000000,1700000000000,'o',2,1700000030000,0,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}','{"phase":"merging","groups_done":1,"groups_total":2}',NULL,'{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20,'normal/normal/',0,0,1);
INSERT INTO "tasks" VALUES('task-in_doubt','lake','00000000-0000-4000-8000-000000000002','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t2"}','plan-1','default',0,1700000000000,3,'in_doubt',3,1,1700000000000,1700000000000,1700000000000,'o',3,1700000030000,0,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}',NULL,'{"reason":{"code":"done","text":"all well","figures":{}},"snapshot_id":7}','{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20,'normal/normal/',0,0,1);
INSERT INTO "tasks" VALUES('task-committed','lake','00000000-0000-4000-8000-000000000003','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t3"}','plan-1','default',0,1700000000000,3,'committed',3,1,1700000000000,1700000000000,1700000000000,NULL,NULL,NULL,0,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}',NULL,'{"reason":{"code":"done","text":"all well","figures":{}},"snapshot_id":7}','{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20,'normal/normal/',NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('task-succeeded','lake','00000000-0000-4000-8000-000000000004','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t4"}','plan-1','default',0,1700000000000,3,'succeeded',4,1,1700000000000,1700000000000,1700000000000,NULL,NULL,NULL,0,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}',NULL,'{"reason":{"code":"done","text":"all well","figures":{}},"snapshot_id":7}','{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20,'normal/normal/',NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('task-failed','lake','00000000-0000-4000-8000-000000000005','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t5"}','plan-1','default',0,1700000000000,3,'failed',3,1,1700000000000,1700000000000,1700000000000,NULL,NULL,NULL,0,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}',NULL,'{"reason":{"code":"done","text":"all well","figures":{}},"snapshot_id":7}','{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20,'normal/normal/',NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('task-cancelled','lake','00000000-0000-4000-8000-000000000006','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t6"}','plan-1','default',0,1700000000000,3,'cancelled',2,0,1700000000000,1700000000000,1700000000000,NULL,NULL,NULL,1,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}',NULL,'{"reason":{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}},"snapshot_id":null}','{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20,'normal/normal/',NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('task-superseded','lake','00000000-0000-4000-8000-000000000007','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t7"}','plan-1','default',0,1700000000000,3,'superseded',3,1,1700000000000,1700000000000,1700000000000,NULL,NULL,NULL,0,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}',NULL,'{"reason":{"code":"done","text":"all well","figures":{}},"snapshot_id":7}','{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20,'normal/normal/',NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('task-0','lake','00000000-0000-4000-8000-000000000000','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t0"}','plan-1','default',0,1700000000000,3,'cancelled',2,0,1700000000000,1700000000000,1700000000000,NULL,NULL,NULL,1,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}',NULL,'{"reason":{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}},"snapshot_id":null,"cause":null}','{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20,'normal/normal/',NULL,NULL,NULL);
INSERT INTO "tasks" VALUES('task-waiting-0','lake','00000000-0000-4000-8000-000000000000','rewrite_data_files','{"catalog":"lake","namespace":["ns"],"name":"t0"}','plan-1','default',0,1700000000000,3,'queued',1,0,1700000000000,1700000000000,1700000000000,NULL,NULL,NULL,0,'{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}}','{"kind":"rewrite_data_files","data_files_before":40,"data_files_after":1,"input_files":40,"output_files":1,"input_bytes":400,"records":80,"layout":null,"call":"","estimate":null}',NULL,NULL,'{"kind":"rewrite_data_files","base_snapshot_id":1,"groups":1,"staged_groups":0,"delete_files":0,"input_files":2,"output_files":1,"input_bytes":20,"record_count":4,"target_file_size_bytes":512,"level":"level-0","layout":null}',20,'normal/normal/',NULL,NULL,NULL);
CREATE TABLE tokens (
	name TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	hint TEXT NOT NULL, 
	grants TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	created_by TEXT NOT NULL, 
	expires_at BIGINT, 
	last_used_at BIGINT, 
	revoked_at BIGINT, 
	CONSTRAINT pk_tokens PRIMARY KEY (name), 
	CONSTRAINT uq_tokens_digest UNIQUE (digest)
);
INSERT INTO "tokens" VALUES('ada','dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd','icw_','[{"role":"approver","scope":{"catalog":"","namespace":[]}}]',1700000000000,'"somebody"',NULL,NULL,NULL);
CREATE TABLE totals (
	total TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	"by" TEXT NOT NULL, 
	amount BIGINT NOT NULL, 
	CONSTRAINT pk_totals PRIMARY KEY (total, kind, "by")
);
INSERT INTO "totals" VALUES('changes','rewrite_data_files','running',1);
INSERT INTO "totals" VALUES('waited','rewrite_data_files','1000',1);
INSERT INTO "totals" VALUES('changes','rewrite_data_files','failed',1);
INSERT INTO "totals" VALUES('attempts','rewrite_data_files','failed',1);
INSERT INTO "totals" VALUES('took','rewrite_data_files','1000',1);
INSERT INTO "totals" VALUES('changes','rewrite_data_files','queued',2);
INSERT INTO "totals" VALUES('changes','rewrite_data_files','cancelled',1);
CREATE TABLE turns (
	resource_group TEXT NOT NULL, 
	tenant TEXT NOT NULL, 
	fencing_token BIGINT NOT NULL, 
	CONSTRAINT pk_turns PRIMARY KEY (resource_group, tenant)
);
INSERT INTO "turns" VALUES('default','',10);
CREATE TABLE unfit_files (
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	code TEXT NOT NULL, 
	detail TEXT NOT NULL, 
	found_at BIGINT NOT NULL, 
	CONSTRAINT pk_unfit_files PRIMARY KEY (catalog, table_uuid, code)
);
INSERT INTO "unfit_files" VALUES('lake','00000000-0000-4000-8000-000000000050','not-sorted','x',6);
CREATE TABLE waiting_plans (
	catalog TEXT NOT NULL, 
	table_uuid TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	plan_id TEXT NOT NULL, 
	waiting TEXT NOT NULL, 
	CONSTRAINT pk_waiting_plans PRIMARY KEY (catalog, table_uuid, kind)
);
INSERT INTO "waiting_plans" VALUES('lake','00000000-0000-4000-8000-000000000050','expire_snapshots','plan-50','{"plan_id":"plan-50","table_id":{"catalog":"lake","uuid":"00000000-0000-4000-8000-000000000050"},"table_name":{"catalog":"lake","namespace":["ns"],"name":"t50"},"kind":"expire_snapshots","reason":{"code":"small-files","text":"40 small files","figures":{"files":40,"ratio":0.5,"month":"2013-01"}},"since":5}');
CREATE TABLE worker_access (
	catalog TEXT NOT NULL, 
	root_digest TEXT NOT NULL, 
	record TEXT NOT NULL, 
	decided_at BIGINT NOT NULL, 
	CONSTRAINT pk_worker_access PRIMARY KEY (catalog, root_digest)
);
INSERT INTO "worker_access" VALUES('lake','f90efeed2b611cf1c0b9f45ba04d6824425f5a7326d9449558683cfc4ec1c1f5','{"catalog":"lake","root":"s3://bucket/0","access":"proved","detail":"","optimizer_id":"optimizer-1","decided_at":1700000000000}',1700000000000);
CREATE INDEX ix_tasks_state ON tasks (state, task_id);
CREATE INDEX ix_tasks_table ON tasks (catalog, table_uuid, task_id);
CREATE UNIQUE INDEX uq_tasks_active_table ON tasks (catalog, table_uuid) WHERE state IN ('committed', 'in_doubt', 'running');
CREATE UNIQUE INDEX uq_tasks_live_kind ON tasks (catalog, table_uuid, kind) WHERE state IN ('committed', 'in_doubt', 'queued', 'running');
CREATE INDEX ix_tables_due ON tables (next_look_at) WHERE dropped_at IS NULL;
CREATE UNIQUE INDEX uq_tables_name ON tables (name_digest) WHERE dropped_at IS NULL;
CREATE INDEX ix_plans_table ON plans (catalog, table_uuid, planned_at, plan_id);
CREATE INDEX ix_tasks_ended ON tasks (state, updated_at, task_id) WHERE state IN ('cancelled', 'failed', 'succeeded', 'superseded');
CREATE UNIQUE INDEX uq_deletion_runs_open ON deletion_runs (catalog, table_uuid) WHERE is_open;
CREATE INDEX ix_deletion_runs_table ON deletion_runs (catalog, table_uuid, run_id);
CREATE INDEX ix_deletion_intents_held ON deletion_intents (run_id) WHERE state IN ('quarantined', 'unknown');
CREATE INDEX ix_deletion_intents_state ON deletion_intents (run_id, state, number);
CREATE INDEX ix_kept_of_tasks_age ON kept_of_tasks (kept_at, task_id);
CREATE UNIQUE INDEX uq_waiting_plans_plan ON waiting_plans (plan_id);
CREATE INDEX ix_audit_at ON audit (at, number);
CREATE INDEX ix_answers_until ON answers (until);
CREATE INDEX ix_messages_waiting ON messages (receiver, number) WHERE state = 'waiting';
CREATE INDEX ix_messages_composed ON messages (receiver, composed_at);
CREATE INDEX ix_messages_ended ON messages (state, ended_at);
CREATE INDEX ix_tasks_queue ON tasks (resource_group, lane, ranked_at, task_id, not_before_at) WHERE state IN ('queued');
CREATE INDEX ix_tasks_shareable ON tasks (resource_group, lane, ranked_at, task_id, shareable_bytes) WHERE state IN ('queued') AND shareable_bytes IS NOT NULL;
CREATE INDEX ix_tasks_held ON tasks (resource_group) WHERE state IN ('in_doubt', 'running');
CREATE INDEX ix_tasks_group_ended ON tasks (resource_group, updated_at, task_id) WHERE state IN ('cancelled', 'failed', 'succeeded', 'superseded');
CREATE INDEX ix_deletion_approvals_at ON deletion_approvals (approved_at, plan_hash);
CREATE INDEX ix_deletion_runs_age ON deletion_runs (changed_at, run_id);
CREATE INDEX ix_tables_dropped ON tables (dropped_at) WHERE dropped_at IS NOT NULL;
CREATE INDEX ix_tasks_plan ON tasks (plan_id);
CREATE INDEX ix_inbox_waiting ON inbox (event_id) WHERE done_at IS NULL AND parked_at IS NULL;
CREATE INDEX ix_inbox_turns ON inbox (reporter, name_digest, event_id, tries, catalog, tried_at) WHERE done_at IS NULL AND parked_at IS NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('inbox',3);
INSERT INTO "sqlite_sequence" VALUES('feed',6);
INSERT INTO "sqlite_sequence" VALUES('messages',3);
COMMIT;
