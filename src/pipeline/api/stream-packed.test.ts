import { get } from 'node:http'
import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { type Frame, StreamReader } from './test/stream-reader.ts'
import { aNode, aWorld, complete, type World } from './test/world.ts'

const nodes = (count: number) =>
  Array.from({ length: count }, (_, n) =>
    aNode(`node-${String(n).padStart(6, '0')}`, { ready: n % 1000 === 999 ? 'notReady' : 'ready' }),
  )
const query = '?cluster=west&type=node'
const isWhole = (frames: readonly Frame[]) => frames.some(({ event }) => event === 'snapshot')

async function aLargeWorld(count: number): Promise<World> {
  const world = await aWorld({ streamBufferBytes: 2 ** 24 })
  await world.connect('west')
  await world.batch('west', [complete('node', nodes(count))])
  return world
}

/** The bytes of a stream as they come, until they hold `text` when unpacked. */
function bytesUntil(url: string, text: string): Promise<{ bytes: Buffer; encoding: string | undefined }> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false, headers: { 'accept-encoding': 'gzip' } }, (response) => {
      let bytes = Buffer.alloc(0)
      response.on('data', (chunk: Buffer) => {
        bytes = Buffer.concat([bytes, chunk])
        if (!unpacked(bytes).includes(text)) return
        resolve({ bytes, encoding: response.headers['content-encoding'] })
        response.destroy()
      })
    }).on('error', reject)
  })
}

const unpacked = (bytes: Buffer): string => gunzipSync(bytes, { finishFlush: 2 }).toString() // Z_SYNC_FLUSH: it goes on

describe('a snapshot of many rows', () => {
  it('is given to each of many in its own time, the same to all', async () => {
    await using world = await aLargeWorld(4000)
    const url = `${await world.server.start()}/api/v1/stream${query}`
    const readers = await Promise.all(Array.from({ length: 8 }, () => StreamReader.open(url)))
    await Promise.all(readers.map((reader) => reader.until(isWhole)))
    expect(new Set(readers.map(({ frames }) => JSON.stringify(frames))).size).toBe(1)
    for (const reader of readers) reader.close()
  })
})

describe('a packed stream', () => {
  it('can be read event by event, and is a fraction of the bytes', async () => {
    await using world = await aLargeWorld(3000)
    const url = `${await world.server.start()}/api/v1/stream${query}`
    const { bytes, encoding } = await bytesUntil(url, '"node-002998"')
    expect(encoding).toBe('gzip')
    expect(unpacked(bytes).length / bytes.length).toBeGreaterThan(8)
    const small = bytesUntil(`${url}`, '"node-003000"')
    await world.batch('west', [complete('node', nodes(3001))])
    expect((await small).encoding).toBe('gzip')
  })

  it('is a whole gzip file once it ends', async () => {
    await using world = await aLargeWorld(1500)
    const url = `${await world.server.start()}/api/v1/stream${query}`
    const ended = new Promise<Buffer>((resolve, reject) => {
      get(url, { agent: false, headers: { 'accept-encoding': 'gzip' } }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => {
          chunks.push(chunk)
          if (unpacked(Buffer.concat(chunks)).includes('"node-001499"')) void world.server.stop()
        })
        response.on('end', () => resolve(Buffer.concat(chunks)))
        response.on('error', reject)
      }).on('error', reject)
    })
    expect(gunzipSync(await ended).toString()).toContain('"node-001499"')
  })

  it('is plain for who does not take gzip', async () => {
    await using world = await aLargeWorld(1)
    const reader = await StreamReader.open(`${await world.server.start()}/api/v1/stream`, {
      'accept-encoding': 'gzip;q=0, br',
    })
    await reader.until((frames) => frames.some(({ event }) => event === 'snapshot'))
    expect(reader.response.headers['content-encoding']).toBeUndefined()
    reader.close()
  })
})
