import { randomBytes } from 'node:crypto'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { open } from 'lmdb'
import { describe, expect, it } from 'vitest'
import { silentLogger } from '#runtime'
import { createSealer, localKeys } from '#sealing'
import { all } from '../../../test/properties.ts'
import { type JournalOptions, journalStorage as openJournal } from './journal.ts'
import { chainOf, type JournalRecord } from './journal-chain.ts'
import { ObjectsLostError } from './journal-errors.ts'
import { aDirectory } from './test/server.ts'
import type { ApiObject } from './types.ts'

/** Sealed, as a hub keeps them; each with a sealer of its own, as a process has. */
const keys = localKeys([randomBytes(32)])
const journalStorage = (options: JournalOptions) => openJournal({ sealer: createSealer(keys), ...options })

/** tries of each property; a long run sets more */
const RUNS = Number(process.env.DAMAGE_RUNS ?? 40)

const object = (name: string, value: number): ApiObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  data: { value: String(value), filler: 'x'.repeat((value * 37) % 500) },
})

/** A folder after some writes, and what it must give back. */
async function aFolder(writes: number): Promise<{ dir: string; expected: Map<string, ApiObject> }> {
  const dir = aDirectory()
  const expected = new Map<string, ApiObject>()
  await using storage = await journalStorage({ dir })
  for (let n = 1; n <= writes; n++) {
    const key = `/configmaps/c${n % 7}`
    const made = n % 5 === 0 ? null : object(`c${n % 7}`, n)
    await storage.write([{ key, object: made }], n)
    if (made) expected.set(key, made)
    else expected.delete(key)
  }
  return { dir, expected }
}

const filesOf = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map((name) => join(dir, name))
    .filter((path) => statSync(path).isFile())
    .sort()

type Harm = (path: string, at: number) => void
const harms: readonly Harm[] = [
  (path, at) => {
    const bytes = readFileSync(path)
    if (bytes.length === 0) return
    const place = at % bytes.length
    bytes[place] = (bytes[place] ?? 0) ^ (1 + (at % 255))
    writeFileSync(path, bytes)
  },
  (path, at) => truncateSync(path, at % (statSync(path).size + 1)),
  (path, at) => {
    const bytes = readFileSync(path)
    bytes.fill(0, at % (bytes.length + 1), Math.min(bytes.length, (at % (bytes.length + 1)) + 64))
    writeFileSync(path, bytes)
  },
  (path) => writeFileSync(path, ''),
  (path) => rmSync(path),
]

describe('stored objects in a damaged folder', () => {
  it(
    'are all there, unaltered, whatever happens to any one file; and the other copy is mended',
    async () => {
      const { dir, expected } = await aFolder(60)
      await fc.assert(
        fc.asyncProperty(fc.nat(), fc.constantFrom(...harms), fc.nat(1_000_000), async (which, harm, at) => {
          const damaged = aDirectory()
          cpSync(dir, damaged, { recursive: true })
          const files = filesOf(damaged)
          harm(files[which % files.length] ?? '', at)
          const first = await journalStorage({ dir: damaged })
          expect(new Map(first.load().objects)).toEqual(expected)
          await first[Symbol.asyncDispose]()
          // Mended: either copy alone is enough now.
          const copy = which % 2 === 0 ? 'a' : 'b'
          rmSync(join(damaged, copy), { recursive: true })
          await using again = await journalStorage({ dir: damaged })
          expect(new Map(again.load().objects)).toEqual(expected)
        }),
        all({ numRuns: RUNS }),
      )
    },
    60_000 + RUNS * 1_000,
  )

  it(
    'that are whole in neither copy are not served without a word: it is refused, and accepted when told so',
    async () => {
      const { dir, expected } = await aFolder(60)
      let refused = 0
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.tuple(fc.nat(), fc.constantFrom(...harms), fc.nat(1_000_000)), { minLength: 2, maxLength: 6 }),
          async (blows) => {
            const damaged = aDirectory()
            cpSync(dir, damaged, { recursive: true })
            for (const [which, harm, at] of blows) {
              // The head alone would notice the loss of all that both copies end with.
              const files = filesOf(damaged).filter((path) => path.endsWith('.segment'))
              const path = files[which % Math.max(1, files.length)]
              if (path) harm(path, at)
            }
            const opened = await journalStorage({ dir: damaged }).catch((error: unknown) => error)
            if (!(opened instanceof ObjectsLostError)) {
              await using storage = opened as Awaited<ReturnType<typeof journalStorage>>
              expect(new Map(storage.load().objects)).toEqual(expected)
              return
            }
            refused++
            expect(opened.message).toMatch(/--accept-loss/)
            const left = await journalStorage({ dir: damaged, acceptLoss: true })
            // Old or missing, never another one than somebody wrote.
            for (const [key, one] of left.load().objects) {
              const { value, filler } = (one as unknown as { data: { value: string; filler: string } }).data
              expect(one).toEqual(object(key.slice('/configmaps/'.length), Number(value)))
              expect(filler.length).toBe((Number(value) * 37) % 500)
            }
            await left[Symbol.asyncDispose]()
            await using after = await journalStorage({ dir: damaged })
            expect(new Map(after.load().objects)).toEqual(new Map(left.load().objects))
          },
        ),
        all({ numRuns: RUNS }),
      )
      expect(refused).toBeGreaterThan(0)
    },
    60_000 + RUNS * 1_000,
  )

  it('are mended once: a later start finds nothing to say', async () => {
    for (const copies of [['a'], ['a', 'b']]) {
      const { dir } = await aFolder(60)
      for (const copy of copies) harms[0]!(join(dir, copy, '0000000000000000.segment'), 5_000)
      const said: string[] = []
      const logger = { ...silentLogger, warn: (_: unknown, text: string) => void said.push(text) }
      const start = async (acceptLoss: boolean) => {
        await using storage = await journalStorage({ dir, logger, acceptLoss })
        await storage.write([{ key: '/configmaps/more', object: object('more', 1) }], 1_000)
      }
      await start(true)
      expect(said).toEqual(copies.length === 1 ? [expect.stringMatching(/made anew from the other/)] : [])
      said.length = 0
      await start(false)
      expect(said).toEqual([])
    }
  })

  it('that were emptied are a loss, not a beginning', async () => {
    const { dir } = await aFolder(10)
    for (const copy of ['a', 'b']) {
      rmSync(join(dir, copy), { recursive: true })
      mkdirSync(join(dir, copy))
    }
    await expect(journalStorage({ dir })).rejects.toThrow(ObjectsLostError)
    await using storage = await journalStorage({ dir, acceptLoss: true })
    expect([...storage.load().objects]).toEqual([])
    expect(readdirSync(dir).some((name) => name.startsWith('lost-'))).toBe(true)
  })

  it('are made anew now and then, so that the journal does not grow without end', async () => {
    const dir = aDirectory()
    const large = (n: number) => ({ ...object('c', n), data: { value: 'y'.repeat(200_000), n: String(n) } })
    {
      await using storage = await journalStorage({ dir })
      for (let n = 1; n <= 120; n++) await storage.write([{ key: `/configmaps/c${n % 3}`, object: large(n) }], n)
    }
    const bytes = filesOf(dir).reduce((sum, path) => sum + statSync(path).size, 0)
    expect(bytes).toBeLessThan(2 * 8 * 2 ** 20)
    await using storage = await journalStorage({ dir })
    expect(
      [...storage.load().objects].map(([, one]) => (one as unknown as { data: { n: string } }).data.n).sort(),
    ).toEqual(['118', '119', '120'])
    expect(storage.load().resourceVersion).toBe(120)
  })

  it('of a version before are taken from their LMDB file once', async () => {
    const dir = aDirectory()
    const database = open<string, string>({ path: join(dir, 'objects.mdb'), encoding: 'string', noSubdir: true })
    await database.put('o//configmaps/c1', JSON.stringify(object('c1', 1)))
    await database.put('resourceVersion', '41')
    await database.close()
    for (let start = 0; start < 2; start++) {
      await using storage = await journalStorage({ dir })
      expect(storage.load().resourceVersion).toBe(41)
      expect([...storage.load().objects]).toEqual([['/configmaps/c1', object('c1', 1)]])
    }
    expect(readdirSync(dir).filter((name) => name.startsWith('objects.mdb'))).toEqual([])
  })
})

describe('the chain of records', () => {
  it('leaves out what failed, begins at the last whole snapshot, and names what is missing', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('write', 'failed', 'snapshot'), { maxLength: 40 }),
        fc.array(fc.nat(200), { maxLength: 3 }),
        fc.nat(2),
        (steps, holes, cutOff) => {
          const all = new Map<number, JournalRecord>()
          const kept: number[] = []
          let [n, last] = [0, 0]
          const add = (part?: readonly [number, number]) => {
            n++
            all.set(n, { n, after: last, rv: n, changes: [], ...(part && { part }) })
            kept.push(n)
            last = n
          }
          for (const step of steps) {
            if (step === 'write') add()
            else if (step === 'failed') n++
            else for (let i = 0; i < 3; i++) add([i, 3])
          }
          const begin = kept.findLast((one) => all.get(one)?.part?.[0] === 0) ?? 0
          const wanted = kept.filter((one) => one >= begin)
          expect(chainOf(all)).toEqual({ records: wanted.map((one) => all.get(one)), lost: [] })
          // A snapshot that a crash cut off, after one or two parts, replaces nothing.
          const crashed = new Map(all)
          for (let i = 0; i < cutOff; i++) {
            const at = n + 1 + i
            crashed.set(at, { n: at, after: i === 0 ? last : at - 1, rv: n, changes: [], part: [i, 3] })
          }
          expect(chainOf(crashed)).toEqual(chainOf(all))
          // Without the newest nothing in here can tell: the head can.
          const hole = holes.map((at) => wanted[at % Math.max(1, wanted.length)]).find((one) => one !== wanted.at(-1))
          if (hole === undefined) return
          const torn = new Map(all)
          torn.delete(hole)
          const { lost } = chainOf(torn)
          const isOldestOfAll = hole === begin && begin === wanted[0] && kept[0] !== begin
          if (!isOldestOfAll) expect(lost.length).toBeGreaterThan(0)
        },
      ),
    )
  })
})
