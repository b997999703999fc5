SELECT COUNT(t.c2) FROM slob_1 t WHERE t.custid >= :first_key AND AND t.custid < :beyond_key;
