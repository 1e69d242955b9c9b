import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { silentLogger } from '#runtime'
import { bundled } from '../../../test/bundled.ts'
import { freePort } from '../runtime/testing/free-port.ts'
import { KeptProcess, type KeptProcessOptions } from './kept-process.ts'

type ToChild = { readonly kind: 'begin'; readonly port: number } | { readonly kind: 'end' } | { readonly kind: 'hang' }
interface FromChild {
  readonly kind: 'listening'
  readonly pid: number
}

let child: Awaited<ReturnType<typeof bundled>>
beforeAll(async () => {
  child = await bundled(join(import.meta.dirname, 'test/echo-child.ts'))
})
afterAll(() => child?.[Symbol.asyncDispose]())
const open: AsyncDisposable[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one[Symbol.asyncDispose]()))
})

async function kept(port: number, options: Partial<KeptProcessOptions<ToChild, FromChild>> = {}) {
  const listening: number[] = []
  const process_ = new KeptProcess<ToChild, FromChild>({
    name: 'echo',
    program: { exec: child.path, args: [], execArgv: [] },
    begin: () => ({ kind: 'begin', port }),
    end: { kind: 'end' },
    heard: ({ pid }) => listening.push(pid),
    logger: silentLogger,
    random: () => 0.1,
    ...options,
  })
  open.push(process_)
  await vi.waitFor(() => expect(listening.length).toBe(1), 20_000)
  return { process: process_, listening }
}

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('a process that is kept running', () => {
  it('is told how to begin, answers, and is started again when it is killed', async () => {
    const changes: (number | undefined)[] = []
    const one = await kept(await freePort(), { onChange: (pid) => changes.push(pid) })
    const [first] = one.listening
    expect(one.process.pid).toBe(first)
    const answer = await one.process.channel?.ask({ kind: 'hang' }, new Uint8Array([1, 2]))
    expect(answer).toEqual({ message: { kind: 'hang' }, bytes: [1, 2], pid: first })
    process.kill(first ?? 0, 'SIGKILL')
    await vi.waitFor(() => expect(one.listening.length).toBe(2), 20_000)
    expect(changes).toEqual([first, undefined, one.listening[1]])
  })

  it('shares a port with the others of its kind', async () => {
    const port = await freePort()
    const [a, b] = [await kept(port), await kept(port)]
    const answered = new Set<string>()
    for (let i = 0; i < 20; i++) answered.add(await (await fetch(`http://127.0.0.1:${port}`)).text())
    expect([...answered].sort()).toEqual([...a.listening, ...b.listening].map(String).sort())
  })

  it('ends by itself when it is no longer wanted, by force where it does not, and is not started again', async () => {
    const gentle = await kept(await freePort())
    await gentle.process[Symbol.asyncDispose]()
    const deaf = await kept(await freePort(), { endWithinMs: 200 })
    deaf.process.channel?.tell({ kind: 'hang' })
    await deaf.process[Symbol.asyncDispose]()
    for (const {
      listening,
      process: { pid, channel },
    } of [gentle, deaf]) {
      expect(isAlive(listening[0] ?? 0)).toBe(false)
      expect([listening.length, pid, channel]).toEqual([1, undefined, undefined])
    }
  })
})
