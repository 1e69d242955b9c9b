import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGzip } from 'node:zlib'
import { expect, it, onTestFinished } from 'vitest'
import { openSink } from '../index.ts'
import { at, contextOf, deliveryOf, rowsTo, writingOf } from '../testing/contract.ts'
import { runGit } from './process.ts'

/*
 * Addresses of repositories are the tenants': a server that sends without end takes no more of the machine than git may have.
 */

async function aFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'git-hostile-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

async function deliveredTo(answer: RequestListener): Promise<unknown> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const spec = { type: 'git' as const, endpoint: `http://127.0.0.1:${port}/a.git` }
  const declaration = { namespace: 'a', name: 'git', cluster: 'west', credentials: {}, spec }
  const sink = await openSink('snapshot', declaration, contextOf({ directory: await aFolder() }))
  return sink.deliver(deliveryOf(writingOf('west'), at(1), rowsTo(1)), AbortSignal.timeout(110_000)).catch((e) => e)
}

const line = (text: string) => `${(text.length + 4).toString(16).padStart(4, '0')}${text}`

it.each(['as they are', 'packed'])('takes no branches without end: %s', async (how) => {
  const many = Buffer.from(
    Array.from({ length: 20_000 }, (_, i) => line(`${'a'.repeat(40)} refs/heads/${i}\n`)).join(''),
  )
  const error = await deliveredTo((_, response) => {
    response.setHeader('content-type', 'application/x-git-upload-pack-advertisement')
    if (how === 'packed') response.setHeader('content-encoding', 'gzip')
    const out = how === 'packed' ? createGzip({ level: 1 }) : response
    if (out !== response) out.pipe(response)
    response.on('error', () => undefined)
    out.write(`${line('# service=git-upload-pack\n')}0000${line(`${'a'.repeat(40)} HEAD\0shallow\n`)}`)
    const flood = () => {
      while (!response.destroyed) if (!out.write(many)) return void out.once('drain', flood)
    }
    flood()
    response.once('close', () => out !== response && out.destroy())
  })
  expect(error).toMatchObject({ errorClass: 'terminal', message: expect.stringMatching(/more than an agent takes/) })
})

it('writes no file without end', async () => {
  const piece = Buffer.alloc(2 ** 20)
  function* twice() {
    for (let i = 0; i < 512; i++) yield piece
  }
  const folder = await aFolder()
  const environment = { PATH: process.env.PATH ?? '', HOME: folder }
  const run = { environment, signal: AbortSignal.timeout(110_000) }
  await runGit(['init', '--quiet', '--bare', folder], run)
  const store = ['-c', 'core.compression=0', '--git-dir', folder, 'hash-object', '-w', '--stdin']
  expect((await runGit(store, { ...run, input: [piece] })).code).toBe(0)
  expect((await runGit(store, { ...run, input: twice() })).code).not.toBe(0)
})
