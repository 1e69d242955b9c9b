import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { Row } from '#extract'
import type { KollectSnapshotSinkSpec } from '#kinds'
import { type Lookup, OutboundGuard } from '#outbound'
import { noS3, type S3Server, startS3 } from '../../../../test/s3-server.ts'
import { openSink, type SinkContext } from '../index.ts'
import { aRow, at, contextOf, deliveryOf, rowsTo, sinkContract, writingOf } from '../testing/contract.ts'

const signal = new AbortController().signal
const west = writingOf('west')
const KEYS = { accessKeyID: 'test-key', secretAccessKey: 'test-secret-nobody-may-see' }

interface Opening {
  readonly name?: string
  readonly spec?: Partial<KollectSnapshotSinkSpec>
  readonly credentials?: Readonly<Record<string, string>>
  readonly context?: Partial<SinkContext>
}

async function opened(endpoint: string, { name = 'store', spec = {}, credentials = KEYS, context = {} }: Opening = {}) {
  const sink = await openSink(
    'snapshot',
    {
      namespace: 'team-a',
      name,
      cluster: 'west',
      credentials: Object.fromEntries(Object.entries(credentials).map(([name, text]) => [name, Buffer.from(text)])),
      spec: { type: 's3', endpoint, pathTemplate: 'clusters/{cluster}/{namespace}/{name}{extension}', ...spec },
    },
    contextOf(context),
  )
  onTestFinished(() => sink[Symbol.asyncDispose]())
  return sink
}

describe.skipIf(noS3() !== undefined)('a bucket of a real store', () => {
  let server: S3Server
  let client: S3Client
  beforeAll(async () => {
    server = await startS3()
    client = new S3Client({
      endpoint: `http://127.0.0.1:${server.port}`,
      region: 'us-east-1',
      forcePathStyle: true,
      credentials: { accessKeyId: KEYS.accessKeyID, secretAccessKey: KEYS.secretAccessKey },
    })
    await client.send(new CreateBucketCommand({ Bucket: 'inventory' }))
  })
  afterAll(async () => {
    client?.destroy()
    await server?.[Symbol.asyncDispose]()
  })

  const place = () => `http://127.0.0.1:${server.port}/inventory/${randomUUID()}`
  const keysUnder = async (url: string) => {
    const prefix = new URL(url).pathname.replace('/inventory/', '')
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: 'inventory', Prefix: `${prefix}/` }))
    return Contents.map(({ Key = '' }) => Key.slice(prefix.length + 1)).sort()
  }
  const textOf = async (url: string, key: string) => {
    const Key = `${new URL(url).pathname.replace('/inventory/', '')}/${key}`
    const found = await client.send(new GetObjectCommand({ Bucket: 'inventory', Key }))
    expect(found.ContentType).toBe('application/json')
    return (await found.Body?.transformToString()) ?? ''
  }
  interface Envelope {
    readonly items: Row[]
    readonly snapshotId: string
    readonly partIndex?: number
  }

  sinkContract('keeps the promises of sinks', {
    sequences: 5,
    maxPartBytes: 1_572_864,
    saysWhoWrote: true,
    harness: async () => {
      const url = place()
      return {
        open: () => opened(url),
        openAs: (writer) => opened(url, { context: { writer } }),
        read: async ({ cluster, namespace, inventory }) => {
          const start = `clusters/${cluster}/${namespace}/${inventory}.`
          const keys = (await keysUnder(url)).filter((key) => key.startsWith(start) && !key.endsWith('.manifest.json'))
          const parts = await Promise.all(keys.map(async (key) => JSON.parse(await textOf(url, key)) as Envelope))
          return parts.flatMap(({ items }) => items)
        },
      }
    },
  })

  it('leaves no object that no manifest names, wherever it was stopped', async () => {
    const url = place()
    const deliver = async (sequence: number, rows: number, within?: number) => {
      const stop = new AbortController()
      let requests = 0
      // Before each request the address is judged: so many are let through.
      const guard = new OutboundGuard({ use: 'sink', allowLoopback: true, allowPrivate: true })
      const check = guard.check.bind(guard)
      guard.check = (host) => {
        if (within !== undefined && ++requests > within) stop.abort(new Error('killed'))
        check(host)
      }
      const sink = await opened(url, { context: { guard } })
      const work = sink.deliver(deliveryOf(west, at(sequence), rowsTo(rows), { maxPartBytes: 8000 }), stop.signal)
      if (within === undefined) await work
      else await work.catch(() => undefined)
    }
    let sequence = 0
    // The first ones end in the middle, too.
    for (const within of [4, 9, 15]) await deliver(++sequence, 100 * within, within)
    await deliver(++sequence, 300)
    for (let within = 2; within < 40; within += 2)
      await deliver(++sequence, within % 4 === 0 ? 40 : 200 + within, within)
    await deliver(++sequence, 60)
    const list = 'clusters/west/team-a/workloads.manifest.json'
    const { paths } = JSON.parse(await textOf(url, list)) as { paths: string[] }
    expect(await keysUnder(url)).toEqual([...paths, list].sort())
    const sink = await opened(url)
    await sink.remove(west, at(++sequence), signal)
    expect(await keysUnder(url)).toEqual([])
  })

  it('keeps an inventory at one place: what another path template left goes once all of it stands at the new one', async () => {
    const url = place()
    const all = { maxPartBytes: 8000 }
    const before = await opened(url)
    const { listedAt = '' } = await before.deliver(deliveryOf(west, at(1), rowsTo(100), all), signal)
    expect(listedAt).toBe('clusters/west/team-a/workloads.manifest.json')
    await before.deliver(deliveryOf(writingOf('east'), at(1), rowsTo(3)), signal)
    const moved = { pathTemplate: 'moved/{cluster}-{name}{extension}' }
    const sink = await opened(url, { spec: moved })
    // Half of it takes nothing away, and the former place is not forgotten.
    const half = deliveryOf(west, at(2), rowsTo(50), { ...all, complete: false, formerList: listedAt })
    expect(await sink.deliver(half, signal)).toMatchObject({ listedAt })
    expect(await keysUnder(url)).toContain(listedAt)
    const whole = deliveryOf(west, at(3), rowsTo(90), { ...all, formerList: listedAt })
    const told = await sink.deliver(whole, signal)
    const { paths } = JSON.parse(await textOf(url, 'moved/west-workloads.manifest.json')) as { paths: string[] }
    const east = ['clusters/east/team-a/workloads.json', 'clusters/east/team-a/workloads.manifest.json']
    expect(await keysUnder(url)).toEqual([...east, ...paths, 'moved/west-workloads.manifest.json'].sort())
    expect(told.listedAt).toBe('moved/west-workloads.manifest.json')
    // Stopped before anybody was told: it goes with the next look, or with the inventory.
    await before.deliver(deliveryOf(west, at(4), rowsTo(80), all), signal)
    await sink.deliver(deliveryOf(west, at(5), rowsTo(80), all), signal)
    await sink.deliver(deliveryOf(west, at(5), rowsTo(80), { ...all, isLook: true, formerList: listedAt }), signal)
    expect((await keysUnder(url)).filter((key) => key.startsWith('clusters/'))).toEqual(east)
    await before.deliver(deliveryOf(west, at(6), rowsTo(80), all), signal)
    await sink.remove(west, at(7), signal, listedAt)
    expect(await keysUnder(url)).toEqual(east)
  })

  it('leaves nothing at places that it was on its way to when the path template changed once more, or the inventory went', async () => {
    const url = place()
    const templates = [
      'a/{cluster}-{name}{extension}',
      'b/{name}{extension}',
      'c/{name}-{cluster}{extension}',
      'd/{name}{extension}',
    ]
    let sequence = 0
    let listedAt = ''
    /** @param within so many requests come through */
    const deliver = async (pathTemplate: string, rows: number, within?: number) => {
      const stop = new AbortController()
      let requests = 0
      const guard = new OutboundGuard({ use: 'sink', allowLoopback: true, allowPrivate: true })
      const check = guard.check.bind(guard)
      guard.check = (host) => {
        if (within !== undefined && ++requests > within) stop.abort(new Error('killed'))
        check(host)
      }
      const sink = await opened(url, { context: { guard }, spec: { pathTemplate } })
      const more = { maxPartBytes: 8000, ...(listedAt !== '' && { formerList: listedAt }) }
      const work = sink.deliver(deliveryOf(west, at(++sequence), rowsTo(rows), more), stop.signal)
      const receipt = await work.catch(() => undefined)
      // What ended in time may not have been written down either.
      if (within === undefined) listedAt = receipt?.listedAt ?? ''
      return sink
    }
    await deliver(templates[0] as string, 100)
    for (let within = 4; within < 40; within += 3)
      for (const template of templates.slice(1)) await deliver(template, 60 + within, within)
    const sink = await deliver(templates[2] as string, 50)
    const list = 'c/workloads-west.manifest.json'
    const { paths } = JSON.parse(await textOf(url, list)) as { paths: string[] }
    expect(await keysUnder(url)).toEqual([...paths, list].sort())
    await deliver(templates[3] as string, 120, 9)
    await deliver(templates[1] as string, 70, 12)
    await client.send(
      new DeleteObjectCommand({
        Bucket: 'inventory',
        Key: `${new URL(url).pathname.replace('/inventory/', '')}/${list}`,
      }),
    )
    await deliver(templates[3] as string, 10, 100)
    await sink.remove(west, at(++sequence), signal, listedAt)
    expect(await keysUnder(url)).toEqual([])
  })

  it('takes over the place of another sink of the inventory, which goes on elsewhere', async () => {
    const url = place()
    const spec = { pathTemplate: 'moved/{cluster}-{name}{extension}' }
    const first = await opened(url, { name: 'first' })
    const { listedAt = '' } = await first.deliver(deliveryOf(west, at(9), rowsTo(3)), signal)
    const second = await opened(url, { name: 'second' })
    await second.deliver(deliveryOf(west, at(2), rowsTo(3)), signal)
    const elsewhere = await opened(url, { name: 'first', spec })
    await elsewhere.deliver(deliveryOf(west, at(10), rowsTo(3), { formerList: listedAt }), signal)
    expect(await keysUnder(url)).toHaveLength(4)
    expect(JSON.parse(await textOf(url, listedAt))).toMatchObject({ sink: 'team-a/second' })
  })

  it('takes away its objects with the inventory, also where somebody deleted the manifest', async () => {
    const url = place()
    const sink = await opened(url)
    await sink.deliver(deliveryOf(writingOf('east'), at(1), rowsTo(3)), signal)
    await sink.deliver(deliveryOf(west, at(1), rowsTo(100), { maxPartBytes: 8000 }), signal)
    const Key = `${new URL(url).pathname.replace('/inventory/', '')}/clusters/west/team-a/workloads.manifest.json`
    await client.send(new DeleteObjectCommand({ Bucket: 'inventory', Key }))
    await sink.remove(west, at(2), signal)
    expect(await keysUnder(url)).toEqual([
      'clusters/east/team-a/workloads.json',
      'clusters/east/team-a/workloads.manifest.json',
    ])
  })

  it('deletes nothing of a set without a manifest before a complete snapshot is there', async () => {
    const url = place()
    const all = { maxPartBytes: 8000 }
    const sink = await opened(url)
    await sink.deliver(deliveryOf(west, at(1), rowsTo(100), all), signal)
    const list = 'clusters/west/team-a/workloads.manifest.json'
    const before = (await keysUnder(url)).filter((key) => key !== list)
    const Key = `${new URL(url).pathname.replace('/inventory/', '')}/${list}`
    await client.send(new DeleteObjectCommand({ Bucket: 'inventory', Key }))
    await sink.deliver(deliveryOf(west, at(2), rowsTo(30), { ...all, complete: false }), signal)
    expect(await keysUnder(url)).toEqual(expect.arrayContaining(before))
    await sink.deliver(deliveryOf(west, at(3), rowsTo(40), all), signal)
    const { paths } = JSON.parse(await textOf(url, list)) as { paths: string[] }
    expect(await keysUnder(url)).toEqual([...paths, list].sort())
  })

  it('that never wrote takes nothing away of what another sink keeps, also where a former version wrote that', async () => {
    const url = place()
    const kept = await opened(url)
    await kept.deliver(deliveryOf(west, at(1), rowsTo(3)), signal)
    const list = 'clusters/west/team-a/workloads.manifest.json'
    const { sink: _, ...former } = JSON.parse(await textOf(url, list)) as { sink: string }
    const owner = { 'clusterpulse-owner': 'west/team-a/workloads' }
    const Key = `${new URL(url).pathname.replace('/inventory/', '')}/${list}`
    const Body = JSON.stringify(former)
    await client.send(
      new PutObjectCommand({ Bucket: 'inventory', Key, Body, ContentType: 'application/json', Metadata: owner }),
    )
    const other = await opened(url, { name: 'other', spec: { pathTemplate: 'moved/{cluster}-{name}{extension}' } })
    await other.remove(west, at(9), signal)
    expect(await keysUnder(url)).toHaveLength(2)
  })

  it('leaves alone what another sink of the inventory keeps at the former place, and whatever a status was made to say', async () => {
    const url = place()
    const other = await opened(url, { name: 'other' })
    const { listedAt = '' } = await other.deliver(deliveryOf(west, at(1), rowsTo(3)), signal)
    await other.deliver(deliveryOf(writingOf('east'), at(1), rowsTo(3)), signal)
    const sink = await opened(url, { spec: { pathTemplate: 'moved/{cluster}-{name}{extension}' } })
    let sequence = 1
    for (const formerList of [
      listedAt,
      listedAt.replace('west', 'east'),
      `x/../${listedAt}`,
      'clusters/west/team-a/workloads.json',
    ])
      await sink.deliver(deliveryOf(west, at(++sequence), rowsTo(sequence), { formerList }), signal)
    expect((await keysUnder(url)).filter((key) => key.startsWith('clusters/'))).toHaveLength(4)
  })

  it('takes away the parts of an inventory whose manifest somebody deleted', async () => {
    const url = place()
    const all = { maxPartBytes: 8000 }
    const sink = await opened(url)
    await sink.deliver(deliveryOf(writingOf('east'), at(1), rowsTo(100), all), signal)
    await sink.deliver(deliveryOf(west, at(1), rowsTo(100), all), signal)
    const list = 'clusters/west/team-a/workloads.manifest.json'
    const prefix = new URL(url).pathname.replace('/inventory/', '')
    const east = (await keysUnder(url)).filter((key) => key.startsWith('clusters/east/'))
    for (const rows of [30, 1, 200]) {
      await client.send(new DeleteObjectCommand({ Bucket: 'inventory', Key: `${prefix}/${list}` }))
      await sink.deliver(deliveryOf(west, at(rows + 1), rowsTo(rows), all), signal)
      const { paths } = JSON.parse(await textOf(url, list)) as { paths: string[] }
      expect(await keysUnder(url)).toEqual([...east, ...paths, list].sort())
    }
  })

  it('has an envelope for each inventory, in parts where it is large, and a manifest that names them', async () => {
    const url = place()
    const sink = await opened(url)
    await sink.deliver(deliveryOf(west, at(1), rowsTo(3)), signal)
    expect(await keysUnder(url)).toEqual([
      'clusters/west/team-a/workloads.json',
      'clusters/west/team-a/workloads.manifest.json',
    ])
    await sink.deliver(deliveryOf(west, at(2), rowsTo(100), { maxPartBytes: 8000 }), signal)
    const keys = await keysUnder(url)
    const manifest = JSON.parse(await textOf(url, 'clusters/west/team-a/workloads.manifest.json')) as {
      paths: string[]
    } & Envelope
    expect(keys).toEqual([...manifest.paths, 'clusters/west/team-a/workloads.manifest.json'].sort())
    expect(manifest.paths[0]).toMatch(/workloads\.part-0001-of-\d{4}\.json$/)
    for (const [i, key] of manifest.paths.entries())
      expect(JSON.parse(await textOf(url, key))).toMatchObject({
        partIndex: i + 1,
        snapshotId: manifest.snapshotId,
        cluster: 'west',
      })
  })

  it('writes over no document of somebody else, and over no part of one, by whatever template leads there', async () => {
    const url = place()
    const victim = await opened(url, { spec: { pathTemplate: 'clusters/{cluster}/{namespace}/{name}-{generation}' } })
    await victim.deliver(deliveryOf(west, at(1), rowsTo(100), { maxPartBytes: 8000, generation: 3 }), signal)
    const inParts = await keysUnder(url)
    await victim.deliver(deliveryOf(west, at(2), rowsTo(2), { generation: 4 }), signal)
    const before = await keysUnder(url)
    expect(before).toContain('clusters/west/team-a/workloads-4.json')

    const other = { cluster: 'west', namespace: 'team', inventory: 'workloads' }
    const attempt = async (pathTemplate: string) => {
      const sink = await opened(url, { spec: { pathTemplate } })
      return sink.deliver(deliveryOf(other, at(1), rowsTo(1)), signal)
    }
    await expect(attempt('clusters/{cluster}/{namespace}-a/{name}-4')).rejects.toMatchObject({
      errorClass: 'terminal',
      message: expect.stringContaining('workloads-4.json belongs to inventory team-a/workloads of cluster west'),
    })
    for (const key of inParts.filter((one) => one.includes('.part-')))
      for (const spelled of [key, key.replace('.part-', '.PART-'), key.replace('.json', '')])
        await expect(attempt(spelled.replace('team-a', '{namespace}-a'))).rejects.toMatchObject({
          errorClass: 'terminal',
          message: expect.stringContaining('is the name of a part of another document'),
        })
    expect(await keysUnder(url)).toEqual(before)
  })

  it('keeps what somebody has written where a list of another still names a file of before', async () => {
    const url = place()
    const victim = { cluster: 'west', namespace: 'team-a', inventory: 'api-1' }
    const sly = { cluster: 'west', namespace: 'team', inventory: 'api' }
    const lists = await opened(url, { spec: { pathTemplate: '{namespace}-a/{name}-{generation}' } })
    const takes = await opened(url, { spec: { pathTemplate: '{namespace}-a/{name}-1' } })
    await lists.deliver(deliveryOf(sly, at(1), rowsTo(1), { generation: 1 }), signal)
    await lists.deliver(deliveryOf(sly, at(2), rowsTo(1), { generation: 2 }), signal)
    await takes.deliver(deliveryOf(sly, at(1), rowsTo(1)), signal)
    await takes.remove(sly, at(2), signal)
    const sink = await opened(url, { spec: { pathTemplate: '{namespace}/{name}' } })
    await sink.deliver(deliveryOf(victim, at(1), rowsTo(3)), signal)
    const before = await textOf(url, 'team-a/api-1.json')

    const again = deliveryOf(sly, at(3), rowsTo(2), { generation: 1 })
    await expect(lists.deliver(again, signal)).rejects.toThrow('belongs to inventory team-a/api-1 of cluster west')
    await lists.remove(sly, at(4), signal)
    expect(await textOf(url, 'team-a/api-1.json')).toBe(before)
    expect(await keysUnder(url)).toEqual(['team-a/api-1.json', 'team-a/api-1.manifest.json'])
  })

  it('an object that somebody wrote over, or that came late, is right again with equal content, also after a restart', async () => {
    const endpoint = place()
    const Key = `${new URL(endpoint).pathname.replace('/inventory/', '')}/clusters/west/team-a/workloads.json`
    const object = async () => {
      const found = await client.send(new GetObjectCommand({ Bucket: 'inventory', Key }))
      return { Body: (await found.Body?.transformToString()) ?? '', Metadata: found.Metadata ?? {} }
    }
    const put = (over: { Body: string; Metadata?: Record<string, string> }) =>
      client.send(new PutObjectCommand({ Bucket: 'inventory', Key, ...over }))
    const deliver = (by: Awaited<ReturnType<typeof opened>>, sequence: number, isLook = true) =>
      by.deliver(deliveryOf(west, at(sequence), rowsTo(3), { isLook }), signal)
    const sink = await opened(endpoint)
    await sink.deliver(deliveryOf(west, at(1), rowsTo(2)), signal)
    const late = await object()
    await deliver(sink, 2, false)
    const right = await object()
    expect(await deliver(sink, 3)).toMatchObject({ written: 0 })
    const { Body } = right
    const wrong = [late, { Body: '{"garbage":true}' }]
    let sequence = 4
    for (const one of wrong) {
      for (const by of [sink, await opened(endpoint)]) {
        await put(one)
        expect(await deliver(by, sequence++)).toMatchObject({ written: 1 })
        expect(await object()).toEqual(right)
        expect(await deliver(by, sequence++)).toMatchObject({ written: 0 })
      }
    }
    // Of a former version, which said nothing of the content, no document is written again for that.
    await put({ Body, Metadata: { 'clusterpulse-owner': right.Metadata['clusterpulse-owner'] ?? '' } })
    expect(await deliver(sink, sequence++)).toMatchObject({ written: 0 })
  })

  it('has a free name for one alone of those who take it in the same moment', async () => {
    const url = place()
    const others = Array.from({ length: 6 }, (_, i) => ({ cluster: 'west', namespace: `team-${i}`, inventory: 'all' }))
    for (let round = 1; round <= 8; round++) {
      const spec = { pathTemplate: `shared/${round}/doc` }
      const sinks = await Promise.all(others.map(() => opened(url, { spec })))
      const tries = await Promise.allSettled(
        others.map((other, i) => sinks[i]?.deliver(deliveryOf(other, at(1), rowsTo(1)), signal)),
      )
      const refused = tries.flatMap((one) => (one.status === 'rejected' ? [(one.reason as Error).message] : []))
      expect(refused).toHaveLength(others.length - 1)
      for (const message of refused) expect(message).toMatch(/belongs to inventory|in the same moment/)
    }
  })

  it('says what is wrong with keys and buckets, and says no key', async () => {
    for (const [url, credentials, errorClass, words] of [
      [`http://127.0.0.1:${server.port}/nothing-here`, KEYS, 'terminal', 'no such bucket'],
      [place(), { ...KEYS, secretAccessKey: 'another-secret-of-mine' }, 'terminal', 'does not take the credentials'],
      [place(), { ...KEYS, accessKeyID: 'nobody-i-know' }, 'terminal', 'does not take the credentials'],
      [place().replace('http:', 'https:'), KEYS, 'terminal', 'speaks no TLS'],
    ] as const) {
      const sink = await opened(url, { credentials })
      const failure = (await sink
        .deliver(deliveryOf(west, at(1), rowsTo(1)), signal)
        .catch((error: Error) => error)) as Error
      expect(failure).toMatchObject({ errorClass, message: expect.stringContaining(words) })
      for (const secret of Object.values(credentials)) expect(failure.message).not.toContain(secret)
      expect(await sink.probe(signal)).toMatchObject({ verified: false, message: failure.message })
    }
    await expect(opened(place(), { credentials: {} })).rejects.toMatchObject({
      errorClass: 'terminal',
      message: expect.stringContaining('accessKeyID and secretAccessKey'),
    })
  })

  it('that answers nobody is left when the call is ended', async () => {
    const sink = await opened(place())
    expect(await sink.probe(signal)).toMatchObject({ verified: true })
    await server.freeze()
    const stop = new AbortController()
    const going = sink.deliver(deliveryOf(west, at(1), rowsTo(1)), stop.signal)
    setImmediate(() => stop.abort(new Error('enough')))
    await expect(going).rejects.toThrow('enough')
    server.thaw()
    await sink.deliver(deliveryOf(west, at(2), rowsTo(1)), signal)
  })
})

type Answer = (request: IncomingMessage, response: ServerResponse, count: number) => boolean

/** What keeps objects and looks at no signature, for weather that a real store does not make on demand. */
async function aWeakStore(answer: Answer = () => false) {
  const objects = new Map<string, Buffer>()
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    const body: Buffer[] = []
    request.on('data', (chunk: Buffer) => body.push(chunk))
    request.on('end', () => {
      requests.push(request)
      if (answer(request, response, requests.length)) return
      const key = new URL(request.url ?? '', 'http://s3.test').pathname
      if (request.method === 'PUT') objects.set(key, Buffer.concat(body))
      if (request.method === 'DELETE') objects.delete(key)
      const found = objects.get(key)
      if (request.method === 'GET' && !found) return failed(response, 404, 'NoSuchKey')
      response.writeHead(request.method === 'DELETE' ? 204 : found ? 200 : 404)
      response.end(request.method === 'GET' ? found : undefined)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, objects, requests }
}

const failed = (response: ServerResponse, status: number, code: string, headers = {}) => {
  response.writeHead(status, { 'content-type': 'application/xml', ...headers })
  response.end(
    `<?xml version="1.0"?><Error><Code>${code}</Code><Message>the key test-secret-nobody-may-see</Message></Error>`,
  )
}

describe('bad luck with a store', () => {
  it.each([
    [503, 'SlowDown', 'transient', 'fewer requests'],
    [500, 'InternalError', 'transient', 'broke off'],
    [507, 'InsufficientStorage', 'transient', 'no room left'],
    [403, 'AccessDenied', 'forbidden', 's3:ListBucket'],
    [403, 'RequestTimeTooSkewed', 'transient', 'clocks'],
    [301, 'PermanentRedirect', 'terminal', 'another region'],
    [400, 'ExpiredToken', 'terminal', 'does not take the credentials'],
  ] as const)('%d %s is an error of its class, in our own words', async (status, code, errorClass, words) => {
    const store = await aWeakStore((_, response) => {
      failed(response, status, code, { location: 'http://169.254.169.254/' })
      return true
    })
    const sink = await opened(`http://127.0.0.1:${store.port}/shop`)
    const failure = (await sink
      .deliver(deliveryOf(west, at(1), rowsTo(1)), signal)
      .catch((error: Error) => error)) as Error
    expect(failure).toMatchObject({ name: 'SinkError', errorClass, message: expect.stringContaining(words) })
    expect(failure.message).not.toContain(KEYS.secretAccessKey)
  })

  it('that knows no condition is written to without one', async () => {
    const store = await aWeakStore((request, response) => {
      if (request.headers['if-none-match'] === undefined) return false
      failed(response, 501, 'NotImplemented')
      return true
    })
    const sink = await opened(`http://127.0.0.1:${store.port}/shop`)
    expect(await sink.deliver(deliveryOf(west, at(1), rowsTo(2)), signal)).toMatchObject({ written: 2 })
    expect(store.objects.size).toBe(2)
    expect(store.requests.filter(({ headers }) => headers['if-none-match'] === '*')).toHaveLength(1)
  })

  it('that knows no condition is asked once more whose an object is before it is written', async () => {
    const store = await aWeakStore((request, response) => {
      if (request.headers['if-none-match'] === undefined) return false
      // Meanwhile somebody else takes the name.
      store.objects.set(new URL(request.url ?? '', 'http://s3.test').pathname, Buffer.from('theirs'))
      failed(response, 501, 'NotImplemented')
      return true
    })
    const sink = await opened(`http://127.0.0.1:${store.port}/shop`)
    await expect(sink.deliver(deliveryOf(west, at(1), rowsTo(2)), signal)).rejects.toMatchObject({
      errorClass: 'transient',
      message: expect.stringContaining('in the same moment'),
    })
    expect([...store.objects.values()].map(String)).toEqual(['theirs'])
  })

  it.each([
    { ...KEYS, secretAccessKey: 'a secret\nof two lines' },
    { ...KEYS, accessKeyID: 'schlüssel' },
  ])('that would be asked with a key that is none is not asked', async (credentials) => {
    const store = await aWeakStore()
    const opening = opened(`http://127.0.0.1:${store.port}/shop`, { credentials })
    await expect(opening).rejects.toMatchObject({
      errorClass: 'terminal',
      message: expect.stringMatching(/^(secretAccessKey|accessKeyID) of the Secret has a space/),
    })
    expect(store.requests).toEqual([])
  })

  it('that passes is not noticed', async () => {
    const store = await aWeakStore((_, response, count) => {
      if (count % 2 === 0) return false
      failed(response, 503, 'SlowDown')
      return true
    })
    const sink = await opened(`http://127.0.0.1:${store.port}/shop`)
    expect(await sink.deliver(deliveryOf(west, at(1), rowsTo(2)), signal)).toMatchObject({ written: 2 })
    expect(store.objects.size).toBe(2)
  })

  it('a clock that is an hour off is set right by the answer of the store', async () => {
    const store = await aWeakStore((request, response) => {
      const now = Date.now() + 3_600_000
      const [, y, mo, d, h, mi, s] =
        /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(String(request.headers['x-amz-date'])) ?? []
      const sent = Date.UTC(Number(y), Number(mo) - 1, Number(d), Number(h), Number(mi), Number(s))
      if (Math.abs(sent - now) < 900_000) return false
      failed(response, 403, 'RequestTimeTooSkewed', { date: new Date(now).toUTCString() })
      return true
    })
    const sink = await opened(`http://127.0.0.1:${store.port}/shop`)
    await sink.deliver(deliveryOf(west, at(1), rowsTo(2)), signal)
    expect(store.objects.size).toBe(2)
  })

  it('a set that was half written is not named by its manifest, and is whole after the next delivery', async () => {
    let isBroken = false
    const store = await aWeakStore((request, response) => {
      if (!isBroken || request.method !== 'PUT' || !request.url?.includes('part-0002')) return false
      failed(response, 403, 'AccessDenied')
      return true
    })
    const sink = await opened(`http://127.0.0.1:${store.port}/shop`)
    const manifest = () =>
      JSON.parse(String(store.objects.get('/shop/clusters/west/team-a/workloads.manifest.json'))) as {
        snapshotId: string
        paths: string[]
      }
    await sink.deliver(deliveryOf(west, at(1), rowsTo(40), { maxPartBytes: 4000 }), signal)
    isBroken = true
    const changed = rowsTo(40).map((_, n) => aRow(n, { image: 'new' }))
    const next = deliveryOf(west, at(2), changed, { maxPartBytes: 4000 })
    await expect(sink.deliver(next, signal)).rejects.toMatchObject({ errorClass: 'forbidden' })
    expect(manifest().snapshotId).toBe('1-1')
    isBroken = false
    await sink.deliver(next, signal)
    expect(manifest().snapshotId).toBe('1-2')
    for (const path of manifest().paths)
      expect(JSON.parse(String(store.objects.get(`/shop/${path}`)))).toMatchObject({ snapshotId: '1-2' })
  })

  it('that keeps no metadata is not written again for that', async () => {
    const store = await aWeakStore()
    const sink = await opened(`http://127.0.0.1:${store.port}/shop`)
    await sink.deliver(deliveryOf(west, at(1), rowsTo(2)), signal)
    for (const sequence of [2, 3])
      expect(await sink.deliver(deliveryOf(west, at(sequence), rowsTo(2), { isLook: true }), signal)).toMatchObject({
        written: 0,
      })
  })

  it('an object that somebody took away comes back with equal content', async () => {
    const store = await aWeakStore()
    const sink = await opened(`http://127.0.0.1:${store.port}/shop`)
    await sink.deliver(deliveryOf(west, at(1), rowsTo(2)), signal)
    const key = '/shop/clusters/west/team-a/workloads.json'
    const before = String(store.objects.get(key))
    store.objects.delete(key)
    expect(await sink.deliver(deliveryOf(west, at(2), rowsTo(2)), signal)).toMatchObject({ written: 1 })
    expect(String(store.objects.get(key))).toBe(before)
  })
})

describe('a store', () => {
  const named =
    (...addresses: readonly string[]): Lookup =>
    (_, callback) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: 4 })),
      )
  const guard = (names: Lookup, allowLoopback = true) =>
    new OutboundGuard({ use: 'sink', allowLoopback, allowPrivate: false, names })

  it('is connected to where its name leads, if that may be', async () => {
    const store = await aWeakStore()
    const url = `http://store.test:${store.port}/shop`
    const open = await opened(url, { context: { guard: guard(named('127.0.0.1')) } })
    await open.deliver(deliveryOf(west, at(1), rowsTo(1)), signal)
    expect(store.objects.size).toBe(2)
    const before = store.requests.length
    for (const [endpoint, one] of [
      [url, guard(named('127.0.0.1', '169.254.169.254'))],
      [url, guard(named('127.0.0.1'), false)],
      [`http://127.0.0.1:${store.port}/shop`, guard(named(), false)],
      ['http://169.254.169.254/shop', guard(named())],
    ] as const) {
      const sink = await opened(endpoint, { context: { guard: one } })
      await expect(sink.deliver(deliveryOf(west, at(2), rowsTo(2)), signal)).rejects.toMatchObject({
        errorClass: 'terminal',
        message: expect.stringContaining('nothing is sent there'),
      })
    }
    expect(store.requests.length).toBe(before)
  })

  it('is told by nothing of this machine', async () => {
    const store = await aWeakStore()
    for (const [name, value] of [
      ['AWS_ENDPOINT_URL', 'http://127.0.0.1:1'],
      ['AWS_ENDPOINT_URL_S3', 'http://127.0.0.1:1'],
      ['HTTP_PROXY', 'http://127.0.0.1:1'],
      ['AWS_ACCESS_KEY_ID', 'of-the-machine'],
    ] as const) {
      process.env[name] = value
      onTestFinished(() => {
        delete process.env[name]
      })
    }
    await (await opened(`http://127.0.0.1:${store.port}/shop`)).deliver(deliveryOf(west, at(1), rowsTo(1)), signal)
    expect(store.objects.size).toBe(2)
    expect(
      store.requests.every(({ headers }) => headers.authorization?.includes(`Credential=${KEYS.accessKeyID}/`)),
    ).toBe(true)
  })

  it('has a preview that needs no look at it', async () => {
    const sink = await opened('s3://shop/fleet')
    expect(sink.preview(west)).toEqual({
      provisioningMode: 'ensure',
      serializationFormat: 'json',
      objectPath: 'fleet/clusters/west/team-a/workloads.json',
    })
  })
})
