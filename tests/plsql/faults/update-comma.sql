UPDATE slob_1 t SET t.c2 = 'a' t.c20 = 'b' WHERE t.custid = 1;
