import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, it } from 'vitest'
import { samplesOf } from '#history'
import { ownerOf, parseClusterName } from '#model'
import { openLog, silentLogger } from '#runtime'
import { bundled } from '../../../test/bundled.ts'
import { aBatch, aNode, complete } from '../state/test/fleet-words.ts'
import { isFor } from './audience.ts'
import { divideLogs } from './division.ts'
import { LedgerFile } from './ledger-file.ts'
import { decodeLogEntry, encodeLogEntry } from './log-record.ts'

/** KILL_CYCLES=200 for the long run. */
const CYCLES = Number(process.env.KILL_CYCLES ?? 5)
const names = Array.from({ length: 20 }, (_, i) => parseClusterName(`c${i}`))
const FORMER = 2
const OWNERS = 3
const EACH = 100
/** what state has of each former log */
const STATE = 400

describe('kill -9 while logs are divided', () => {
  it(`at random moments, ${CYCLES} times: the former logs are as they were, and divided once more all is there, once`, {
    timeout: 60_000 + CYCLES * 15_000,
  }, async () => {
    await using program = await bundled(join(import.meta.dirname, 'test/divide-child.ts'))
    const directory = await mkdtemp(join(tmpdir(), 'kill-divide-'))
    try {
      await fill(directory)
      const before = await contentOf(directory)
      for (let cycle = 0; cycle < CYCLES; cycle++) {
        const given = [program.path, directory, String(FORMER), String(OWNERS), String(STATE - 1)]
        const child = spawn(process.execPath, given, { stdio: ['ignore', 'pipe', 'inherit'] })
        const ended = once(child, 'exit')
        let isBegun = false
        for await (const line of createInterface({ input: child.stdout })) {
          if (line !== 'dividing' || isBegun) continue
          isBegun = true
          setTimeout(() => child.kill('SIGKILL'), Math.random() * 200)
        }
        const [, signal] = (await ended) as [number | null, string | null]
        expect(signal).toBe('SIGKILL') // it did not end by itself
        expect(await contentOf(directory)).toEqual(before)
      }
      await check(directory)
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  })
})

const open = (directory: string, name: string) => openLog({ directory: join(directory, name), segmentBytes: 64 * 1024 })

async function fill(directory: string): Promise<void> {
  for (let i = 0; i < FORMER; i++) {
    const log = await open(directory, `f${i}`)
    const mine = names.filter((name) => ownerOf(name, FORMER) === i + 1)
    for (let sequence = 1; sequence <= EACH; sequence++) {
      const payloads = mine.map((cluster) => {
        const parts = [complete('node', aNode(`n${sequence}`))]
        const batch = aBatch(cluster, sequence, parts, { origin: 'a', source: 'push' })
        const samples = samplesOf(batch)
        const record = { kind: 'batch', batch, receivedAt: sequence } as const
        const audience = new Set(['state', 'history'])
        return encodeLogEntry({ record, audience, ...(samples && { samples }) })
      })
      await Promise.all(payloads.map((payload) => log.append(payload)))
    }
    await log[Symbol.asyncDispose]()
  }
}

async function check(directory: string): Promise<void> {
  await rm(join(directory, 'new'), { recursive: true, force: true })
  const openAll = (count: number, name: string) =>
    Promise.all(Array.from({ length: count }, (_, i) => open(directory, `${name}${i}`)))
  const [former, to] = [await openAll(FORMER, 'f'), await openAll(OWNERS, 'new/')]
  const from = former.map((log) => ({ log, positions: { state: STATE - 1, history: -1 } }))
  const divided = await divideLogs({ from, to, logger: silentLogger })
  expect(divided).toEqual({ clusters: names.length, records: names.length * EACH, unreadable: 0 })
  for (const [i, log] of to.entries()) {
    const [forHistory, forState] = [new Map<string, number[]>(), new Map<string, number[]>()]
    for await (const { payload } of log.read(0)) {
      const { record, audience } = decodeLogEntry(payload) ?? {}
      if (record?.kind !== 'batch') throw new Error('only batches were written')
      const { cluster, sequence } = record.batch
      if (isFor(audience, 'history')) forHistory.set(cluster, [...(forHistory.get(cluster) ?? []), sequence])
      if (isFor(audience, 'state')) forState.set(cluster, [...(forState.get(cluster) ?? []), sequence])
    }
    const { ledger } = await LedgerFile.open(log, silentLogger, () => undefined)
    for (const name of names.filter((one) => ownerOf(one, OWNERS) === i + 1)) {
      expect(forHistory.get(name)).toEqual(Array.from({ length: EACH }, (_, n) => n + 1))
      // State has the first records of each former log: of each cluster as many, or one more.
      const mine = names.filter((one) => ownerOf(one, FORMER) === ownerOf(name, FORMER))
      const taken = Math.ceil((STATE - mine.indexOf(name)) / mine.length)
      expect(forState.get(name)).toEqual(Array.from({ length: EACH - taken }, (_, n) => taken + n + 1))
      expect(ledger.received(name, 'a')).toEqual([[1, EACH]])
    }
    expect(forHistory.size).toBe(names.filter((one) => ownerOf(one, OWNERS) === i + 1).length)
  }
  for (const log of [...former, ...to]) await log[Symbol.asyncDispose]()
}

async function contentOf(directory: string): Promise<Map<string, string>> {
  const content = new Map<string, string>()
  for (let i = 0; i < FORMER; i++) {
    const folder = join(directory, `f${i}`)
    for (const name of (await readdir(folder)).sort()) {
      if (name === 'lock') continue
      content.set(
        `${i}/${name}`,
        createHash('sha256')
          .update(await readFile(join(folder, name)))
          .digest('hex'),
      )
    }
  }
  return content
}
