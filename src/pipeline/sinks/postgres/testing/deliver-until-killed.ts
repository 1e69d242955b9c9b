/*
 * A process that delivers 10 000 rows to PostgreSQL again and again, each time with other values and a new epoch, until it is killed.
 *   deliver-until-killed.ts DSN SCHEMA EPOCH
 */
import { aRow, at, contextOf, deliveryOf, writingOf } from '../../testing/delivery.ts'
import { PostgresSink } from '../index.ts'

const [dsn = '', schema = '', epoch = ''] = process.argv.slice(2)
const sink = new PostgresSink(
  {
    namespace: 'team-a',
    name: 'warehouse',
    cluster: 'west',
    credentials: { dsn: Buffer.from(dsn) },
    spec: { type: 'postgres', postgres: { databaseRef: { name: 'x' }, table: 'inventory', schema } },
  },
  contextOf({ writer: `killed-${epoch}` }),
)
process.stdout.write('ready\n')
for (let sequence = 1; ; sequence++) {
  const rows = Array.from({ length: 10_000 }, (_, n) => aRow(n, { epoch, sequence }))
  await sink.deliver(deliveryOf(writingOf('west'), at(sequence, Number(epoch)), rows), new AbortController().signal)
  process.stdout.write('delivered\n')
}
