import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { KollectEventSinkSpec } from '#kinds'
import { natsPrograms, natsPython, natsPythonMissing, startNats } from '../../../platform/nats/testing/nats-server.ts'
import { kafkaMissing, startKafka } from '../kafka/testing/kafka-broker.ts'
import { openSink } from '../open.ts'
import { aRow, at, contextOf, deliveryOf, rowsTo, writingOf } from '../testing/contract.ts'

const SLOW_MS = 180_000
const never = new AbortController().signal
const [program] = natsPrograms

/** The code of a guide, as somebody copies it. */
async function codeOf(guide: string, language: string): Promise<string> {
  const text = await readFile(`docs/guide/${guide}.md`, 'utf8')
  const [, code] = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(text) ?? []
  if (code === undefined) throw new Error(`there is no ${language} in ${guide}`)
  return code
}

/** A file of its own folder, which has our packages. */
async function fileOf(name: string, code: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'reader-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  await symlink(resolve('node_modules'), join(directory, 'node_modules'))
  await writeFile(join(directory, name), code)
  return join(directory, name)
}

/** What a reader prints, a JSON text a line. */
function reading(command: string, args: readonly string[]) {
  const child: ChildProcess = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let [lines, complaints] = ['', '']
  child.stdout?.on('data', (text: Buffer) => {
    lines += text.toString()
  })
  child.stderr?.on('data', (text: Buffer) => {
    complaints += text.toString()
  })
  return () => {
    if (child.exitCode !== null) throw new Error(`the reader ended: ${complaints}`)
    return lines.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
  }
}

const inventory = 'west/team-a/workloads'
const expected = [
  { inventory, rows: 3, complete: 'true' },
  { inventory, rows: 4, complete: 'false' },
  { inventory, rows: 2500, complete: 'true' },
  { inventory, rows: 0, complete: 'true' },
]

/** A small snapshot, one that lacks rows, 5 MB, and an end. */
async function writeAll(spec: KollectEventSinkSpec): Promise<void> {
  const declaration = { namespace: 'team-a', name: 'events', cluster: 'west', credentials: {}, spec }
  const sink = await openSink('event', declaration, contextOf())
  const west = writingOf('west')
  const large = Array.from({ length: 2500 }, (_, n) => aRow(n, { text: `${n}`.padEnd(2000, 'x') }))
  await sink.deliver(deliveryOf(west, at(1), rowsTo(3)), never)
  await sink.deliver(deliveryOf(west, at(2), [aRow(3)], { complete: false }), never)
  await sink.deliver(deliveryOf(west, at(3), large), never)
  await sink.remove(west, at(4), never)
  await sink[Symbol.asyncDispose]()
}

const natsWhy = program?.missing ?? natsPythonMissing
describe.skipIf(natsWhy !== undefined)(
  `the reader of the guide for NATS${natsWhy === undefined ? '' : ` (not run: ${natsWhy})`}`,
  { timeout: SLOW_MS },
  () => {
    it('holds the newest rows, from parts, upserts and an end', async () => {
      const nats = await startNats(program!)
      onTestFinished(() => nats[Symbol.asyncDispose]())
      await writeAll({ type: 'nats', endpoint: nats.url, nats: { subject: 'inventory.{cluster}.{namespace}.{name}' } })
      const seen = reading(natsPython, [await fileOf('reader.py', await codeOf('sinks-nats', 'python')), nats.url])
      await expect.poll(seen).toEqual(expected)
    })
  },
)

describe.skipIf(kafkaMissing !== undefined)(
  `the reader of the guide for Kafka${kafkaMissing === undefined ? '' : ` (not run: ${kafkaMissing})`}`,
  { timeout: SLOW_MS },
  () => {
    it('holds the newest rows, from parts, upserts and an end', async () => {
      const kafka = await startKafka()
      onTestFinished(() => kafka[Symbol.asyncDispose]())
      await writeAll({ type: 'kafka', kafka: { brokers: [kafka.address], topic: 'inventory' } })
      const file = await fileOf('reader.mjs', await codeOf('sinks-kafka', 'js'))
      const seen = reading(process.execPath, [file, kafka.address])
      await expect.poll(seen).toEqual(expected)
    })
  },
)
