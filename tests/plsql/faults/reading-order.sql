SELECT custid FROM slob_1 ORDER custid;
