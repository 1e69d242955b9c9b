import { Agent, fetch } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noRealApiServer, startRealApiServer } from '../../../../test/real-apiserver.ts'
import { listenApi } from '../listen.ts'
import { ApiServer } from '../server.ts'
import type { ApiObject } from '../types.ts'
import { decodeObject, encodeList, encodeObject, encodeWatchEvent } from './index.ts'
import { reviews, type Sample, samples } from './test/samples.ts'

const JSON_TYPE = 'application/json'
const PROTOBUF = 'application/vnd.kubernetes.protobuf'

interface Target {
  readonly url: string
  readonly ca: string
  readonly token: string
  stop(): Promise<void>
}

async function embedded(): Promise<Target> {
  const server = await ApiServer.open({ storage: { kind: 'memory' } })
  const token = 'suite-token'
  const listener = await listenApi({
    mounts: new Map([['', server]]),
    tokens: [{ token, user: 'admin', groups: ['system:masters'] }],
  })
  return {
    url: listener.url,
    ca: listener.caPem,
    token,
    stop: async () => {
      await server[Symbol.asyncDispose]()
      await listener[Symbol.asyncDispose]()
    },
  }
}

async function real(): Promise<Target> {
  const started = await startRealApiServer()
  if (started?.access.credentials.kind !== 'token') throw new Error('there is no real kube-apiserver here')
  const { access } = started
  return {
    url: access.server,
    ca: access.ca ?? '',
    token: started.access.credentials.token,
    stop: () => started.stop(),
  }
}

interface Answer {
  readonly code: number
  readonly type: string
  readonly bytes: Buffer
  readonly object: ApiObject
}

type Fields = Record<string, unknown>

/** Nulls stand for nothing in JSON of the API, and are nothing in protobuf. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, each]) => each !== null)
      .map(([name, each]) => [name, withoutNulls(each)]),
  )
}

/** What two writes of the same object have in common. */
function comparable(object: ApiObject): unknown {
  const {
    uid: _,
    resourceVersion: __,
    creationTimestamp: ___,
    managedFields: ____,
    generation: _5,
    ...metadata
  } = object.metadata as Fields
  const { lastPhaseTransitionTime: _6, ...status } = (object.status ?? {}) as Fields
  return withoutNulls({ ...object, metadata, ...(object.status ? { status } : {}) })
}

const missing = process.env.CI_REQUIRE_ALL === '1' ? undefined : noRealApiServer()

describe.each([
  { name: 'the embedded API', skip: undefined, start: embedded },
  { name: 'a real kube-apiserver', skip: missing, start: real },
])('protobuf of $name', ({ name, skip, start }) => {
  describe.skipIf(skip)(skip ?? 'reachable', () => {
    let target: Target
    let agent: Agent
    beforeAll(async () => {
      target = await start()
      agent = new Agent({ connect: { ca: target.ca } })
      await ask('POST', '/api/v1/namespaces', { body: { metadata: { name: 'suite' } } })
    })
    afterAll(async () => {
      await agent?.destroy()
      await target?.stop()
    })

    async function ask(
      method: string,
      path: string,
      { body, accept = JSON_TYPE }: { body?: object | Buffer; accept?: string } = {},
    ): Promise<Answer> {
      const binary = Buffer.isBuffer(body)
      const response = await fetch(target.url + path, {
        method,
        dispatcher: agent,
        headers: {
          authorization: `Bearer ${target.token}`,
          accept,
          ...(body ? { 'content-type': binary ? PROTOBUF : JSON_TYPE } : {}),
        },
        ...(body ? { body: binary ? body : JSON.stringify(body) } : {}),
      })
      const bytes = Buffer.from(await response.arrayBuffer())
      const type = (response.headers.get('content-type') ?? '').split(';')[0] ?? ''
      const object = (
        type === PROTOBUF ? decodeObject(bytes, { unknown: 'throw' }) : JSON.parse(String(bytes))
      ) as ApiObject
      return { code: response.status, type, bytes, object }
    }

    const placed = ({ path, object, kind, apiVersion }: Sample) => ({
      path: path.replace('{namespace}', 'suite'),
      object: JSON.parse(
        JSON.stringify({ kind, apiVersion, ...object }).replaceAll('{namespace}', 'suite'),
      ) as ApiObject,
    })

    describe.each(samples)('$apiVersion $kind', (sample) => {
      const { path, object } = placed(sample)
      const one = `${path}/${object.metadata.name}`

      it('reads what is written as JSON', async () => {
        const created = await ask('POST', path, { body: object })
        expect(created.object, String(created.bytes)).toMatchObject({ kind: sample.kind })
        if (sample.status) {
          const written = await ask('PUT', `${one}/status`, { body: { ...created.object, status: sample.status } })
          expect(written.code, String(written.bytes)).toBe(200)
        }
        const json = await ask('GET', one)
        const binary = await ask('GET', one, { accept: PROTOBUF })
        expect(binary.type).toBe(PROTOBUF)
        expect(binary.object).toEqual(withoutNulls(json.object))
      })

      it('writes what is read as JSON', async () => {
        const { object: stored } = await ask('GET', one)
        const { resourceVersion: _, uid: __, managedFields: ___, ...metadata } = stored.metadata
        const copy = { ...stored, metadata: { ...metadata, name: `${metadata.name}-copy` } } as ApiObject
        const asJson = await ask('POST', `${path}?dryRun=All`, { body: copy })
        const asBinary = await ask('POST', `${path}?dryRun=All`, { body: encodeObject(copy) })
        expect(asBinary.code, String(asBinary.bytes)).toBe(201)
        expect(comparable(asBinary.object)).toEqual(comparable(asJson.object))
      })

      it('lists as JSON does', async () => {
        const json = (await ask('GET', path)).object as unknown as { items: ApiObject[]; metadata: object }
        const binary = (await ask('GET', path, { accept: PROTOBUF })).object
        expect(comparable(binary)).toEqual(comparable(json as unknown as ApiObject))
        const again = encodeList(sample.apiVersion, sample.kind, json.items, json.metadata)
        expect(decodeObject(again, { unknown: 'throw' })).toEqual(withoutNulls(json))
      })
    })

    it.each(reviews)('asks $kind', async (sample) => {
      const { path, object } = placed(sample)
      const json = await ask('POST', path, { body: object })
      const binary = await ask('POST', path, { body: encodeObject(object), accept: `${PROTOBUF},${JSON_TYPE}` })
      expect(binary.code, String(binary.bytes)).toBe(201)
      // Rules come in any order.
      const said = ({ kind, spec, status }: ApiObject) => ({ kind, spec, status: Object.keys(status ?? {}).sort() })
      expect(said(binary.object)).toEqual(said(json.object))
    })

    it('watches in frames that say what ours say', async () => {
      const { object: stored } = await ask('GET', '/api/v1/namespaces/suite')
      const stop = new AbortController()
      const response = await fetch(
        `${target.url}/api/v1/namespaces?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Dsuite`,
        {
          dispatcher: agent,
          signal: stop.signal,
          headers: { authorization: `Bearer ${target.token}`, accept: `${PROTOBUF};stream=watch` },
        },
      )
      expect(response.headers.get('content-type')).toBe(`${PROTOBUF};stream=watch`)
      const ours = encodeWatchEvent('ADDED', encodeObject(stored))
      let frame = Buffer.alloc(0)
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
        frame = Buffer.concat([frame, chunk])
        if (frame.length >= 4 && frame.length >= 4 + frame.readUInt32BE(0)) break
      }
      stop.abort()
      // The original writes empty texts too, we leave out what is not there: the frames are equal in what they say.
      const objectIn = (bytes: Buffer) => decodeObject(bytes.subarray(bytes.indexOf('k8s\0')), { unknown: 'throw' })
      expect(frame.readUInt32BE(0)).toBe(frame.length - 4)
      expect(objectIn(frame)).toEqual(objectIn(ours))
      expect(frame.subarray(4, 11)).toEqual(ours.subarray(4, 11))
    })

    it('deletes with options as protobuf', async () => {
      await ask('POST', '/api/v1/namespaces/suite/configmaps', { body: { metadata: { name: 'gone' } } })
      const options = { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { uid: 'another' } }
      const refused = await ask('DELETE', '/api/v1/namespaces/suite/configmaps/gone', { body: encodeObject(options) })
      expect(refused.object, name).toMatchObject({ kind: 'Status', reason: 'Conflict' })
    })
  })
})
