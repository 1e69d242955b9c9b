// A process of its own for journal.test.ts: writes objects until it is killed, and prints `name value .` once a write is
// acknowledged. Values rise over restarts, so that a lost write shows as an older value. With `grow` every write is a new
// object, and the first refused one ends it: `refused httpCode .`.
import { writeSync } from 'node:fs'
import { ApiServer } from '../server.ts'
import { ApiError } from '../status.ts'

const [, , dir = '', grow] = process.argv
const server = await ApiServer.open({ storage: { kind: 'journal', dir } })
const at = { group: '', version: 'v1', plural: 'configmaps' }
const values = server.objects.list(at).map(({ data }) => Number((data as { value: string }).value))
let value = Math.max(0, ...values)

async function writeOn(lane: number): Promise<never> {
  for (let n = 0; ; n++) {
    const name = grow ? `m${value + 1}` : `m${(lane * 7 + n) % 50}`
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

try {
  // Several at once, so that batches of more than one are killed too.
  await Promise.all([0, 1, 2, 3].map(writeOn))
} catch (error) {
  if (!(error instanceof ApiError)) throw error
  writeSync(1, `refused ${error.httpCode} .\n`)
  await server[Symbol.asyncDispose]()
  process.exit(0)
}
