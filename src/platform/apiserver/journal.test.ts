import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { bundled } from '../../../test/bundled.ts'
import { configMap } from './behaviour/subject.ts'
import { ApiServer } from './server.ts'
import { aDirectory, aServer } from './test/server.ts'
import type { ApiObject } from './types.ts'

let program: Awaited<ReturnType<typeof bundled>>
beforeAll(async () => {
  program = await bundled(join(import.meta.dirname, 'test/writer.ts'))
})
afterAll(() => program?.[Symbol.asyncDispose]())

const CONFIG_MAPS = { group: '', version: 'v1', plural: 'configmaps' }
const map = (name: string, value = ''): ApiObject => ({
  ...configMap(name, { value }),
  metadata: { name, namespace: 'default' },
})

describe('objects on disk', () => {
  it('are there again after a restart, with their versions, and versions go on rising', async () => {
    const dir = aDirectory()
    const first = await ApiServer.open({ storage: { kind: 'journal', dir } })
    const made = await first.objects.create(map('a', '1'))
    const gone = await first.objects.create(map('b'))
    await first.objects.delete(CONFIG_MAPS, gone.metadata)
    const { resourceVersion } = first.objects
    await first[Symbol.asyncDispose]()

    const second = await aServer({ storage: { kind: 'journal', dir } })
    expect(second.objects.list(CONFIG_MAPS)).toEqual([made])
    expect(second.objects.resourceVersion).toBe(resourceVersion)
    const next = await second.objects.create(map('c'))
    expect(Number(next.metadata.resourceVersion)).toBeGreaterThan(Number(resourceVersion))
    expect(() => second.objects.watch(CONFIG_MAPS, () => undefined, '1')).toThrow('too old resource version')
  })

  it('belong to one process at a time', async () => {
    const dir = aDirectory()
    await aServer({ storage: { kind: 'journal', dir } })
    await expect(ApiServer.open({ storage: { kind: 'journal', dir } })).rejects.toMatchObject({
      code: 'directory_locked',
      message: expect.stringContaining(`${dir} is in use by process ${process.pid}`),
    })
  })

  it('are refused to a second process, and free when the first was killed', async () => {
    const dir = aDirectory()
    const writer = startWriter(dir)
    await writer.acknowledged()
    await expect(ApiServer.open({ storage: { kind: 'journal', dir } })).rejects.toMatchObject({
      code: 'directory_locked',
      holder: expect.stringContaining(`process ${writer.pid} `),
    })
    await writer.kill()
    await aServer({ storage: { kind: 'journal', dir } })
  })

  it('keep all that was acknowledged when the disk is full, say so, and take more when there is room', async () => {
    const dir = aDirectory()
    // A limit on the size of files does to the driver what a full disk does.
    const writer = startWriter(dir, { maxFileKiB: 1000 })
    const acknowledged: Acknowledged[] = []
    let last = await writer.acknowledged()
    for (; last.name !== 'refused'; last = await writer.acknowledged()) acknowledged.push(last)
    // 507 where the file system says that it is full; a limit is none of its business.
    expect(['500', '507']).toContain(last.value)
    await writer.kill()
    const server = await aServer({ storage: { kind: 'journal', dir } })
    const names = new Set(server.objects.list(CONFIG_MAPS).map(({ metadata }) => metadata.name))
    expect(acknowledged.filter(({ name }) => !names.has(name))).toEqual([])
    await server.objects.put(map('more'))
  })

  it('bring back what definitions define', async () => {
    const dir = aDirectory()
    const things = { group: 'test.io', version: 'v1', plural: 'things' }
    const first = await ApiServer.open({ storage: { kind: 'journal', dir } })
    await first.objects.create({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'things.test.io' },
      spec: {
        group: 'test.io',
        scope: 'Cluster',
        names: { plural: 'things', kind: 'Thing' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    })
    const thing = await first.objects.create({ apiVersion: 'test.io/v1', kind: 'Thing', metadata: { name: 'a' } })
    await first[Symbol.asyncDispose]()
    const second = await aServer({ storage: { kind: 'journal', dir } })
    expect(second.objects.list(things)).toEqual([thing])
  })

  const cycles = Number(process.env.APISERVER_KILLS ?? 4)
  it(`survive kill -9 at any moment once acknowledged (${cycles} times)`, {
    timeout: 60_000 + cycles * 30_000,
  }, async () => {
    const dir = aDirectory()
    const acknowledged = new Map<string, string>()
    for (let cycle = 0; cycle < cycles; cycle++) {
      const writer = startWriter(dir)
      const many = 1 + Math.floor(Math.random() * 400)
      for (let n = 0; n < many; n++) {
        const { name, value } = await writer.acknowledged()
        acknowledged.set(name, value)
      }
      for (const { name, value } of await writer.kill()) acknowledged.set(name, value)
      const server = await ApiServer.open({ storage: { kind: 'journal', dir } })
      try {
        for (const [name, value] of acknowledged) {
          const stored = server.objects.get(CONFIG_MAPS, { name, namespace: 'default' })
          // A write may have reached the disk before its answer was read: newer is right, older is lost.
          const found = Number((stored?.data as { value?: string } | undefined)?.value ?? -1)
          expect(found, `${name} after kill ${cycle + 1}`).toBeGreaterThanOrEqual(Number(value))
        }
      } finally {
        await server[Symbol.asyncDispose]()
      }
    }
    expect(acknowledged.size).toBeGreaterThan(0)
  })
})

interface Acknowledged {
  readonly name: string
  readonly value: string
}

interface Writer {
  readonly pid: number
  /** The next write that was answered. */
  acknowledged(): Promise<Acknowledged>
  /** @returns what was answered and not read yet. */
  kill(): Promise<Acknowledged[]>
}

/** Another process that writes objects as fast as it can and says which are acknowledged. */
function startWriter(dir: string, limit: { maxFileKiB?: number } = {}): Writer {
  const { maxFileKiB } = limit
  const command = [process.execPath, program.path, dir, ...(maxFileKiB ? ['grow'] : [])]
  // Without the trap the system would end the process instead of refusing the write.
  const limited = ['bash', '-c', `trap "" XFSZ; ulimit -f ${maxFileKiB}; exec "$@"`, 'bash', ...command]
  const [first = '', ...args] = maxFileKiB ? limited : command
  const child: ChildProcess = spawn(first, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  if (!child.stdout) throw new Error('the writer has no output')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const parse = (line: string): Acknowledged => {
    const [name = '', value = ''] = line.split(' ')
    return { name, value }
  }
  return {
    pid: child.pid ?? 0,
    async acknowledged() {
      const { value, done } = await lines.next()
      if (done) throw new Error('the writer ended')
      return parse(value)
    },
    async kill() {
      if (child.exitCode === null) {
        const exited = once(child, 'exit')
        child.kill('SIGKILL')
        await exited
      }
      const rest: Acknowledged[] = []
      for (let line = await lines.next(); !line.done; line = await lines.next())
        // The last line may be cut where the process ended.
        if (/^m\d+ \d+ \.$/.test(line.value)) rest.push(parse(line.value))
      return rest
    },
  }
}
