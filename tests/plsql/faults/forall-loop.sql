DECLARE
  TYPE numbers IS TABLE OF NUMBER INDEX BY PLS_INTEGER;
  keys numbers;
BEGIN
  FORALL i IN 1 .. keys.COUNT LOOP
    UPDATE slob_1 SET c2 = 'x' WHERE custid = keys(i);
  END LOOP;
END;
/
