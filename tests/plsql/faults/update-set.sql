UPDATE slob_1 t SET WHERE t.custid = 1;
