// A process of its own for lmdb.test.ts: writes objects until it is killed, and prints `name value .` once a write is
// acknowledged. Values rise over restarts, so that a lost write shows as an older value.
import { writeSync } from 'node:fs'
import { ApiServer } from './server.ts'

const [, , dir = ''] = process.argv
const server = await ApiServer.open({ storage: { kind: 'lmdb', dir } })
const at = { group: '', version: 'v1', plural: 'configmaps' }
const values = server.objects.list(at).map(({ data }) => Number((data as { value: string }).value))
let value = Math.max(0, ...values)

async function writeOn(lane: number): Promise<never> {
  for (let n = 0; ; n++) {
    const name = `m${(lane * 7 + n) % 50}`
    const mine = ++value
    await server.objects.put({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: 'default' },
      data: { value: String(mine), filler: 'x'.repeat((mine * 37) % 3000) },
    })
    writeSync(1, `${name} ${mine} .\n`)
  }
}

// Several at once, so that batches of more than one are killed too.
await Promise.all([0, 1, 2, 3].map(writeOn))
