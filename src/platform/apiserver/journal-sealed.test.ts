import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { open } from 'lmdb'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openLog, silentLogger } from '#runtime'
import { createSealer, isSealed, keptKeys, localKeys } from '#sealing'
import { bundled } from '../../../test/bundled.ts'
import { journalStorage } from './journal.ts'
import { ObjectsLostError, ObjectsSealedError } from './journal-errors.ts'
import { openRemnant } from './journal-remnants.ts'
import { aDirectory } from './test/server.ts'
import type { ApiObject } from './types.ts'

let opener: Awaited<ReturnType<typeof bundled>>
beforeAll(async () => {
  opener = await bundled(join(import.meta.dirname, 'test/opener.ts'))
})
afterAll(() => opener?.[Symbol.asyncDispose]())

const aKey = () => randomBytes(32)
const sealerOf = (...keys: Buffer[]) => createSealer(localKeys(keys))

/** A value nobody else has, as people write it and as it stands in a Secret. */
class Hidden {
  readonly text = `hidden-${randomBytes(24).toString('hex')}`
  readonly encoded = Buffer.from(this.text).toString('base64')

  /** Files that hold it, raw or in base64, whatever stands before it there. */
  foundIn(folder: string): string[] {
    const forms = [this.text, ...[0, 1, 2].map((shift) => this.#encodedAfter(shift))]
    return filesOf(folder).filter((path) => forms.some((form) => readFileSync(path).includes(form)))
  }

  #encodedAfter(shift: number): string {
    const all = Buffer.concat([Buffer.alloc(shift), Buffer.from(this.text)]).toString('base64')
    return all.slice(shift === 0 ? 0 : 4, -4)
  }
}

const filesOf = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .sort()

const secret = (name: string, { text, encoded }: Hidden): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: {
    name,
    namespace: 'default',
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify({ stringData: { key: text } }) },
  },
  data: { key: encoded },
})
const work = (name: string, hidden: Hidden): ApiObject => ({
  apiVersion: 'work.open-cluster-management.io/v1',
  kind: 'ManifestWork',
  metadata: { name, namespace: 'c1' },
  spec: { workload: { manifests: [secret('in-work', hidden)] } },
})

type Stored = Map<string, ApiObject>

interface Open {
  readonly acceptLoss?: boolean
  readonly sealer?: ReturnType<typeof createSealer>
  readonly said?: string[]
}
/** What is there, as a start finds it. */
async function readAt(dir: string, { said = [], ...options }: Open = {}): Promise<Stored> {
  const say = (_: unknown, text: string) => void said.push(text)
  await using storage = await journalStorage({
    dir,
    logger: { ...silentLogger, info: say, warn: say, error: say },
    ...options,
  })
  return new Map(storage.load().objects)
}

/** Some writes of objects that hide something; some are written over, some removed. */
async function fill(dir: string, hidden: Hidden, sealer?: ReturnType<typeof createSealer>): Promise<Stored> {
  const options = sealer ? { sealer } : {}
  {
    await using storage = await journalStorage({ dir, ...options })
    for (let n = 1; n <= 60; n++) {
      const [name, isWork] = [`s${n % 9}`, n % 2 === 0]
      const key = isWork ? `work.open-cluster-management.io/manifestworks/c1/${name}` : `/secrets/default/${name}`
      await storage.write([{ key, object: n % 7 === 0 ? null : (isWork ? work : secret)(name, hidden) }], n)
    }
  }
  return readAt(dir, options)
}

describe('stored objects that are sealed', () => {
  it('stand nowhere in the folder, and are there again', async () => {
    const [dir, hidden, key] = [aDirectory(), new Hidden(), aKey()]
    const objects = await fill(dir, hidden, sealerOf(key))
    expect(objects.size).toBeGreaterThan(5)
    expect(hidden.foundIn(dir)).toEqual([])
    expect(filesOf(dir).filter((path) => readFileSync(path).includes('manifestworks'))).toEqual([])
    expect(await readAt(dir, { sealer: sealerOf(key) })).toEqual(objects)
  })

  it('that lay in the clear are sealed at the next start, wherever they lay, and nothing of it is left', async () => {
    const [dir, hidden, key] = [aDirectory(), new Hidden(), aKey()]
    const objects = await fill(dir, hidden)
    // What versions before left: an LMDB file that was taken over, one that was harmed, a folder and a segment put aside.
    const database = open<string, string>({ path: join(dir, 'objects.mdb'), encoding: 'string', noSubdir: true })
    await database.put('o//secrets/default/old', JSON.stringify(secret('old', hidden)))
    await database.remove('o//secrets/default/old')
    await database.close()
    cpSync(join(dir, 'objects.mdb'), join(dir, 'objects.mdb.damaged'))
    renameSync(join(dir, 'objects.mdb'), join(dir, 'objects.mdb.imported'))
    cpSync(join(dir, 'a'), join(dir, 'lost-2026-01-01', 'a'), { recursive: true })
    const segment = filesOf(join(dir, 'a')).find((path) => path.endsWith('.segment')) ?? ''
    cpSync(segment, join(dir, 'b', '0000000000009999.segment.damaged'))
    const aside = readFileSync(segment)
    expect(hidden.foundIn(dir).length).toBeGreaterThan(5)

    const said: string[] = []
    expect(await readAt(dir, { sealer: sealerOf(key), said })).toEqual(objects)
    expect(hidden.foundIn(dir)).toEqual([])
    expect(said).toEqual([expect.stringContaining('nothing of them is left in the clear')])
    const put = join(dir, 'b', '0000000000009999.segment.damaged.sealed')
    expect(await openRemnant(put, sealerOf(key))).toEqual(aside)
    expect(await readAt(dir, { sealer: sealerOf(key), said })).toEqual(objects)
    expect(said).toHaveLength(1)
  })

  it('of an LMDB file go over sealed, and the file with its free pages goes', async () => {
    const [dir, hidden, key] = [aDirectory(), new Hidden(), aKey()]
    const database = open<string, string>({ path: join(dir, 'objects.mdb'), encoding: 'string', noSubdir: true })
    for (const name of ['kept', 'gone'])
      await database.put(`o//secrets/default/${name}`, JSON.stringify(secret(name, hidden)))
    await database.remove('o//secrets/default/gone')
    await database.put('resourceVersion', '41')
    await database.close()
    expect(hidden.foundIn(dir)).not.toEqual([])
    for (let start = 0; start < 2; start++) {
      const objects = await readAt(dir, { sealer: sealerOf(key) })
      expect(objects).toEqual(new Map([['/secrets/default/kept', secret('kept', hidden)]]))
      expect(hidden.foundIn(dir)).toEqual([])
    }
  })

  it('are sealed anew with a new key at the start, and the former one may go', async () => {
    const [dir, hidden] = [aDirectory(), new Hidden()]
    let key = aKey()
    const objects = await fill(dir, hidden, sealerOf(key))
    for (let turn = 0; turn < 3; turn++) {
      const [former, now] = [key, aKey()]
      const sealer = sealerOf(now, former)
      expect(await readAt(dir, { sealer })).toEqual(objects)
      expect(sealer.unneededKeyIds()).toEqual([sealerOf(former).keyId])
      expect(await readAt(dir, { sealer: sealerOf(now) })).toEqual(objects)
      const named = filesOf(dir).filter((path) => readFileSync(path).includes(sealerOf(former).keyId))
      expect(named).toEqual([])
      key = now
    }
  })

  it('are sealed anew however many they are', { tags: ['long'] }, async () => {
    const [dir, key, filler] = [aDirectory(), aKey(), 'x'.repeat(2 ** 20)]
    {
      await using storage = await journalStorage({ dir })
      for (let n = 1; n <= 7; n++) {
        const changes = Array.from({ length: 10 }, (_, i) => {
          const name = `s${n}-${i}`
          const object = {
            apiVersion: 'v1',
            kind: 'Secret',
            metadata: { name, namespace: 'default' },
            data: { filler },
          }
          return { key: `/secrets/default/${name}`, object }
        })
        await storage.write(changes, n)
      }
    }
    const large = (path: string) => readFileSync(path).includes(filler)
    expect(filesOf(dir).some(large)).toBe(true)
    expect((await readAt(dir, { sealer: sealerOf(key) })).size).toBe(70)
    expect(filesOf(dir).some(large)).toBe(false)
  })

  it('are refused without their key or with another one, untouched, and given with it', async () => {
    const [dir, hidden, key, other] = [aDirectory(), new Hidden(), aKey(), aKey()]
    const objects = await fill(dir, hidden, sealerOf(key))
    const contents = () => filesOf(dir).map((path) => [path, readFileSync(path).toString('base64')])
    const before = contents()
    const unmade = join(aDirectory(), 'encryption.key')
    const made = createSealer(await keptKeys({ path: unmade, given: [] }))
    for (const sealer of [undefined, sealerOf(other), made]) {
      const said = await readAt(dir, sealer ? { sealer } : {}).catch((error: unknown) => error as Error)
      expect(said).toBeInstanceOf(ObjectsSealedError)
      expect(said).toMatchObject({ code: 'encryption_key_missing', retryable: false })
      expect(String(said)).toContain(`sealed with the key ${sealerOf(key).keyId}`)
      expect(String(said)).toMatch(/ENCRYPTION_KEY_FILE.*encryption\.key.*--accept-loss/)
      expect(contents()).toEqual(before)
    }
    expect(existsSync(unmade)).toBe(false)
    expect(await readAt(dir, { sealer: sealerOf(other, key) })).toEqual(objects)
  })

  it('whose key is lost for good are given up when told so, and can be put back when it is found', async () => {
    const [dir, hidden, key, now] = [aDirectory(), new Hidden(), aKey(), aKey()]
    const objects = await fill(dir, hidden, sealerOf(key))
    expect(await readAt(dir, { sealer: sealerOf(now), acceptLoss: true })).toEqual(new Map())
    expect(await readAt(dir, { sealer: sealerOf(now) })).toEqual(new Map())
    const lost = readdirSync(dir).find((name) => name.startsWith('lost-')) ?? ''
    const found = aDirectory()
    for (const path of filesOf(join(dir, lost))) {
      const to = join(found, path.slice(join(dir, lost).length).replace(/\.sealed$/, ''))
      mkdirSync(dirname(to), { recursive: true })
      writeFileSync(to, path.endsWith('.sealed') ? await openRemnant(path, sealerOf(now)) : readFileSync(path))
    }
    for (const copy of ['a', 'b']) rmSync(join(found, copy, 'lock'), { force: true })
    expect(await readAt(found, { sealer: sealerOf(now, key) })).toEqual(objects)
  })

  it('are not believed where somebody without the key wrote among them, or changed one', async () => {
    const key = aKey()
    const forged = { ...secret('s1', new Hidden()), data: { key: 'Zm9yZ2Vk' } }
    const harms: [string, (payload: Buffer, n: number, of: number) => Buffer[]][] = [
      [
        'added in the clear',
        (payload, n, of) => [
          payload,
          ...(n === of - 1
            ? [
                Buffer.from(
                  JSON.stringify({ n: of + 1, after: of, rv: of + 1, changes: [['/secrets/default/s1', forged]] }),
                ),
              ]
            : []),
        ],
      ],
      ['changed', (payload, n) => [n === 30 ? changed(payload) : payload]],
      ['left out', (payload, n) => (n === 30 ? [] : [payload])],
    ]
    for (const [how, harm] of harms) {
      const [dir, hidden] = [aDirectory(), new Hidden()]
      const objects = await fill(dir, hidden, sealerOf(key))
      for (const copy of ['a', 'b']) await rewrite(join(dir, copy), harm)
      const said: string[] = []
      const found = await readAt(dir, { sealer: sealerOf(key), said }).catch((error: unknown) => error)
      if (how === 'added in the clear') {
        expect(found).toEqual(objects)
        expect(said).toContainEqual(expect.stringContaining('whoever put them there had no key'))
      } else expect(found, how).toBeInstanceOf(ObjectsLostError)
    }
  })

  const kills = Number(process.env.ROTATION_KILLS ?? 6)
  it(`survive kill -9 while they are sealed, and while they are sealed anew (${kills} times)`, {
    timeout: 60_000 + kills * 10_000,
  }, async () => {
    const [dir, hidden] = [aDirectory(), new Hidden()]
    await fill(dir, hidden)
    {
      await using storage = await journalStorage({ dir })
      // Enough that a start takes a while over it.
      for (let n = 0; n < 40; n++) {
        const changes = Array.from({ length: 50 }, (_, i) => {
          const name = `l${n}-${i}`
          return { key: `/secrets/default/${name}`, object: { ...secret(name, hidden), filler: 'x'.repeat(2_000) } }
        })
        await storage.write(changes, 61 + n)
      }
    }
    const objects = await readAt(dir)
    const keys: Buffer[] = []
    let amid = 0
    for (let kill = 0; kill < kills; kill++) {
      keys.unshift(aKey())
      const opener = await startOpener(dir, keys)
      // At any moment, and every other time as soon as something is sealed with the new key.
      if (kill % 2 === 0) await new Promise((resolve) => setTimeout(resolve, 250 * Math.random()))
      else await expect.poll(() => keysIn(dir).has(sealerOf(keys[0]!).keyId), { interval: 1 }).toBe(true)
      await opener.kill()
      if (keysIn(dir).size > 1) amid++
    }
    expect(await readAt(dir, { sealer: sealerOf(...keys) })).toEqual(objects)
    expect(hidden.foundIn(dir)).toEqual([])
    expect(await readAt(dir, { sealer: sealerOf(keys[0]!) })).toEqual(objects)
    expect(amid, 'some were killed between two keys').toBeGreaterThan(0)
  })
})

/** What the segments of a folder begin with: an id of a key, or a record in the clear. */
function keysIn(dir: string): Set<string> {
  const heads = filesOf(dir)
    .filter((path) => path.endsWith('.segment'))
    .map((path) => {
      const file = openSync(path, 'r')
      const bytes = Buffer.alloc(256)
      readSync(file, bytes)
      closeSync(file)
      return bytes.toString('latin1')
    })
  return new Set(heads.flatMap((head) => /CPS1.([0-9a-f]{16})/s.exec(head)?.[1] ?? /\{"n"/.exec(head)?.[0] ?? []))
}

/** By one bit, near the end of what is sealed. */
function changed(payload: Buffer): Buffer {
  const bytes = Buffer.from(payload)
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 40) ^ 1, bytes.length - 40)
  return bytes
}

/** The same log with other records, each with a checksum of its own. */
async function rewrite(directory: string, harm: (payload: Buffer, n: number, of: number) => Buffer[]): Promise<void> {
  const options = { directory, segmentBytes: 2 ** 20, retainBytes: 0, retainMs: 0 }
  const payloads: Buffer[] = []
  {
    await using log = await openLog(options)
    for await (const { payload } of log.read(log.firstIndex())) payloads.push(Buffer.from(payload))
  }
  expect(payloads.every(isSealed)).toBe(true)
  rmSync(directory, { recursive: true })
  await using log = await openLog(options)
  for (const [n, payload] of payloads.entries())
    for (const one of harm(payload, n, payloads.length)) await log.append(one)
}

/** Another process that opens the journal with these keys, the first in force. */
async function startOpener(dir: string, keys: readonly Buffer[]): Promise<{ kill(): Promise<void> }> {
  const env = { ...process.env, KEYS: keys.map((key) => key.toString('base64')).join(' ') }
  const child: ChildProcess = spawn(process.execPath, [opener.path, dir], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  if (!child.stdout) throw new Error('it has no output')
  const lines = createInterface({ input: child.stdout })
  const exited = once(child, 'exit')
  const first = await Promise.race([once(lines, 'line'), exited.then(() => ['ended'])])
  expect(first).toEqual(['opening'])
  return {
    async kill() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
