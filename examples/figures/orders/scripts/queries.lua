function thread_init()
  connection = sysbench.sql.driver():connect()
  statements, values = {}, {}
  for name, text in pairs(texts) do
    statements[name] = connection:prepare(text)
    values[name] = statements[name]:bind_create(sysbench.sql.type.INT)
    statements[name]:bind_param(values[name])
  end
end
local function execute(name, value)
  values[name]:set(value)
  statements[name]:execute()
end

local random = sysbench.rand.uniform

local function browse_products()
  local customer = random(1, customers)
  execute('Customer', customer)
  if random(1, 3) == 1 then
    connection:query(begin)
    execute('AddLogon', customer)
    connection:query('COMMIT')
  end
  for _ = 1, random(1, 23) do
    execute('Product', random(1, 1000))
  end
end

function event()
  local drawn = random(1, weights.SQ + weights.WQ + weights.WA + weights.BP)
  if drawn <= weights.SQ then
    execute('SalesRep', random(145, 171))
  elseif drawn <= weights.SQ + weights.WQ then
    execute('Warehouse', random(1, 1000))
  elseif drawn <= weights.SQ + weights.WQ + weights.WA then
    execute('WarehouseActivity', random(1, 1000))
  else
    browse_products()
  end
end

function thread_done()
  for _, statement in pairs(statements) do
    statement:close()
  end
  connection:disconnect()
end
