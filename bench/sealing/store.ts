// node --import tsx store.ts clear|sealed DIR OBJECTS BYTES: writes so many Secrets, opens the folder again, prints what it took.
import { randomBytes } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ApiServer } from '#apiserver'
import { createSealer, localKeys } from '#sealing'

export interface Measured {
  readonly writesPerSecond: number
  readonly cpuPerWriteUs: number
  readonly startMs: number
  readonly bytesPerObject: number
  readonly rssMiB: number
}

const WRITERS = 64
const [, , mode, dir = '', count = '0', bytes = '0'] = process.argv
const objects = Number(count)
const keys = localKeys([randomBytes(32)])
const open = () =>
  ApiServer.open({ storage: { kind: 'journal', dir, ...(mode === 'sealed' && { sealer: createSealer(keys) }) } })

const filler = randomBytes(Number(bytes)).toString('base64')
let next = 0
async function write(server: ApiServer): Promise<void> {
  while (next < objects)
    await server.objects.create({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: `s${next++}`, namespace: 'default' },
      data: { filler },
    })
}

const took = { ms: 0, cpuUs: 0 }
{
  await using server = await open()
  const [at, before] = [performance.now(), process.cpuUsage()]
  await Promise.all(Array.from({ length: WRITERS }, () => write(server)))
  const { user, system } = process.cpuUsage(before)
  took.ms = performance.now() - at
  took.cpuUs = user + system
}
const stored = readdirSync(dir, { recursive: true, encoding: 'utf8' })
  .map((name) => statSync(join(dir, name)))
  .reduce((sum, { size }) => sum + size, 0)
const at = performance.now()
{
  await using server = await open()
  const found = server.store.count('/secrets')
  if (found !== objects) throw new Error(`${found} of ${objects} objects are there`)
}
const measured: Measured = {
  writesPerSecond: objects / (took.ms / 1000),
  cpuPerWriteUs: took.cpuUs / objects,
  startMs: performance.now() - at,
  bytesPerObject: stored / objects,
  rssMiB: process.resourceUsage().maxRSS / 1024,
}
process.stdout.write(JSON.stringify(measured))
