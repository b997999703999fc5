INSERT INTO slob_1 (custid, c2 VALUES (1, 'x');
