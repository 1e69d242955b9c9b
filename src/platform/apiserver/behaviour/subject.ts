import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, fetch, request } from 'undici'
import { noRealApiServer, startRealApiServer } from '../../../../test/real-apiserver.ts'
import { type ApiListener, listenApi } from '../listen.ts'
import { ApiServer } from '../server.ts'
import type { ApiObject } from '../types.ts'

export interface Answer {
  readonly code: number
  // The suite reads answers as the JSON they are; expectations say what has to be in them.
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into arbitrary JSON
  readonly body: any
  readonly bytes: Uint8Array
  readonly type: string
  readonly warnings: string[]
  readonly headers: Headers
}

export interface Ask {
  readonly body?: unknown
  readonly type?: string
  readonly accept?: string
  readonly query?: Readonly<Record<string, string>>
  readonly agent?: string
  readonly headers?: Readonly<Record<string, string>>
  /** as whom it is asked; each group has a header of its own */
  readonly as?: { readonly user: string; readonly groups?: readonly string[] }
}

export interface WatchedEvent {
  readonly type: string
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into arbitrary JSON
  readonly object: any
}

/** A server under test. The same assertions run on every one. */
export interface Subject extends AsyncDisposable {
  readonly real: boolean
  ask(method: string, path: string, ask?: Ask): Promise<Answer>
  /** The bytes of an answer as they come, until the client leaves. */
  stream(
    path: string,
    ask: Ask,
  ): Promise<{ readonly type: string; read(length: number): Promise<Uint8Array> } & AsyncDisposable>
  /** Events as they come; ends when the server ends the stream. */
  watch(path: string, query?: Readonly<Record<string, string>>, accept?: string): Promise<Watching>
}

export interface Watching extends AsyncDisposable {
  readonly code: number
  /** The next event; fails after ten seconds. undefined: the stream ended. */
  next(): Promise<WatchedEvent | undefined>
  /** The next `n` events that are no bookmarks. */
  take(n: number): Promise<WatchedEvent[]>
}

const WAIT_MS = 10_000

export function subjectAt(options: {
  url: string
  ca: string
  token: string
  real: boolean
  stop: () => Promise<void>
  /** asked instead of the address */
  local?: ApiListener['answer'] | undefined
}): Subject {
  const agent = new Agent({ connect: { ca: options.ca }, allowH2: false })
  const { local } = options
  const open = (
    method: string,
    path: string,
    { body, type, accept, query, agent: userAgent, headers }: Ask,
    signal?: AbortSignal,
  ) => {
    const url = new URL(options.url + path)
    for (const [name, value] of Object.entries(query ?? {})) url.searchParams.append(name, value)
    const payload =
      body === undefined
        ? undefined
        : typeof body === 'string' || body instanceof Uint8Array
          ? body
          : JSON.stringify(body)
    const wanted = {
      method,
      headers: {
        authorization: `Bearer ${options.token}`,
        accept: accept ?? 'application/json',
        'user-agent': userAgent ?? 'suite/1.0',
        ...(payload === undefined ? {} : { 'content-type': type ?? 'application/json' }),
        ...headers,
      },
      ...(payload === undefined ? {} : { body: payload }),
    }
    if (local) return localResponse(local, { ...wanted, path: url.pathname + url.search }, signal)
    return fetch(url, { ...wanted, dispatcher: agent, ...(signal ? { signal } : {}) })
  }
  return {
    real: options.real,
    async ask(method, path, ask = {}) {
      if (ask.as && local) return askAsHere(local, options, { method, path, ask, as: ask.as })
      if (ask.as) return askAs(options, agent, { method, path, ask, as: ask.as })
      const response = await open(method, path, ask)
      const bytes = new Uint8Array(await response.arrayBuffer())
      const text = new TextDecoder().decode(bytes)
      const type = response.headers.get('content-type') ?? ''
      return {
        code: response.status,
        bytes,
        body: text.startsWith('{') ? JSON.parse(text) : text,
        type,
        warnings: (response.headers.get('warning') ?? '').split(/, (?=299)/).filter(Boolean),
        headers: response.headers as unknown as Headers,
      }
    },
    async stream(path, ask) {
      const stop = new AbortController()
      const response = await open('GET', path, ask, stop.signal)
      const chunks = (response.body as unknown as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]()
      let rest = Buffer.alloc(0)
      return {
        type: response.headers.get('content-type') ?? '',
        async read(length) {
          while (rest.length < length) {
            const { value, done } = await within(chunks.next(), 'no bytes came')
            if (done) throw new Error('the stream ended')
            rest = Buffer.concat([rest, value])
          }
          const taken = rest.subarray(0, length)
          rest = rest.subarray(length)
          return taken
        },
        async [Symbol.asyncDispose]() {
          stop.abort()
        },
      }
    },
    async watch(path, query = {}, accept) {
      const stop = new AbortController()
      const response = await open(
        'GET',
        path,
        { query: { watch: '1', ...query }, ...(accept ? { accept } : {}) },
        stop.signal,
      )
      const lines = readLines(response.body as unknown as AsyncIterable<Uint8Array>)
      const next = async () => {
        const line = await within(lines.next(), 'no event came')
        return line.done ? undefined : (JSON.parse(line.value) as WatchedEvent)
      }
      return {
        code: response.status,
        next,
        async take(n) {
          const events: WatchedEvent[] = []
          while (events.length < n) {
            const event = await next()
            if (!event) throw new Error(`the watch ended after ${JSON.stringify(events.map(({ type }) => type))}`)
            if (event.type !== 'BOOKMARK') events.push(event)
          }
          return events
        },
        async [Symbol.asyncDispose]() {
          stop.abort()
        },
      }
    },
    async [Symbol.asyncDispose]() {
      await agent.destroy()
      await options.stop()
    },
  }
}

/** fetch would join the headers of several groups to one. */
async function askAs(
  { url, token }: { url: string; token: string },
  dispatcher: Agent,
  { method, path, ask, as }: { method: string; path: string; ask: Ask; as: NonNullable<Ask['as']> },
): Promise<Answer> {
  const response = await request(url + path, {
    method: method as 'GET',
    dispatcher,
    query: { ...ask.query },
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json',
      ...(ask.body === undefined ? {} : { 'content-type': ask.type ?? 'application/json' }),
      'impersonate-user': as.user,
      ...(as.groups?.length ? { 'impersonate-group': [...as.groups] } : {}),
      ...ask.headers,
    },
    ...(ask.body === undefined ? {} : { body: typeof ask.body === 'string' ? ask.body : JSON.stringify(ask.body) }),
  })
  const bytes = new Uint8Array(await response.body.arrayBuffer())
  const text = new TextDecoder().decode(bytes)
  const headers = new Headers()
  for (const [name, value] of Object.entries(response.headers)) headers.set(name, String(value))
  return {
    code: response.statusCode,
    bytes,
    body: text.startsWith('{') ? JSON.parse(text) : text,
    type: headers.get('content-type') ?? '',
    warnings: (headers.get('warning') ?? '').split(/, ?(?=299)/).filter(Boolean),
    headers,
  }
}

const never = new AbortController().signal

async function localResponse(
  local: ApiListener['answer'],
  request: Parameters<ApiListener['answer']>[0],
  signal = never,
): Promise<Response> {
  const { status, headers, chunks } = await local(request, signal)
  const answered = new Headers()
  for (const [name, value] of Object.entries(headers))
    for (const one of [value ?? []].flat()) answered.append(name, one)
  return new Response(ReadableStream.from(chunks), { status, headers: answered })
}

async function askAsHere(
  local: ApiListener['answer'],
  { url, token }: { url: string; token: string },
  { method, path, ask, as }: { method: string; path: string; ask: Ask; as: NonNullable<Ask['as']> },
): Promise<Answer> {
  const target = new URL(url + path)
  for (const [name, value] of Object.entries(ask.query ?? {})) target.searchParams.append(name, value)
  const response = await localResponse(local, {
    method,
    path: target.pathname + target.search,
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json',
      ...(ask.body === undefined ? {} : { 'content-type': ask.type ?? 'application/json' }),
      'Impersonate-User': as.user,
      ...(as.groups?.length ? { 'Impersonate-Group': as.groups } : {}),
      ...ask.headers,
    },
    ...(ask.body === undefined ? {} : { body: typeof ask.body === 'string' ? ask.body : JSON.stringify(ask.body) }),
  })
  const bytes = new Uint8Array(await response.arrayBuffer())
  const text = new TextDecoder().decode(bytes)
  return {
    code: response.status,
    bytes,
    body: text.startsWith('{') ? JSON.parse(text) : text,
    type: response.headers.get('content-type') ?? '',
    warnings: (response.headers.get('warning') ?? '').split(/, ?(?=299)/).filter(Boolean),
    headers: response.headers,
  }
}

async function within<T>(promise: Promise<T>, why: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${why} within ${WAIT_MS} ms`)), WAIT_MS)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

async function* readLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true })
    const lines = rest.split('\n')
    rest = lines.pop() ?? ''
    yield* lines.filter(Boolean)
  }
  if (rest.trim() !== '') yield rest
}

async function embedded(
  storage: { kind: 'memory' } | { kind: 'journal'; dir: string },
  isHere = false,
): Promise<Subject> {
  const server = await ApiServer.open({ storage, defaultRoles: true, bookmarkMs: 500, maxHistory: 2000 })
  const listener = await listenApi({
    mounts: new Map([['/clusters/east', server]]),
    tokens: [{ token: 'suite-token', user: 'admin', groups: ['system:masters'] }],
  })
  return subjectAt({
    url: `${listener.url}/clusters/east`,
    ca: listener.caPem,
    token: 'suite-token',
    real: false,
    local: isHere ? listener.answer : undefined,
    stop: async () => {
      await server[Symbol.asyncDispose]()
      await listener[Symbol.asyncDispose]()
      if (storage.kind === 'journal') rmSync(storage.dir, { recursive: true, force: true })
    },
  })
}

async function real(): Promise<Subject> {
  const started = await startRealApiServer()
  if (!started) throw new Error('there is no real kube-apiserver here')
  const { access } = started
  if (access.credentials.kind !== 'token') throw new Error('the suite speaks with a token')
  return subjectAt({
    url: access.server,
    ca: access.ca ?? '',
    token: access.credentials.token,
    real: true,
    stop: () => started.stop(),
  })
}

export const subjects: readonly { name: string; skip: string | undefined; start: () => Promise<Subject> }[] = [
  { name: 'embedded, memory', skip: undefined, start: () => embedded({ kind: 'memory' }) },
  {
    name: 'embedded, journal',
    skip: undefined,
    start: () => embedded({ kind: 'journal', dir: mkdtempSync(join(tmpdir(), 'apiserver-suite-')) }),
  },
  { name: 'embedded, asked in process', skip: undefined, start: () => embedded({ kind: 'memory' }, true) },
  {
    name: 'real kube-apiserver',
    skip: process.env.CI_REQUIRE_ALL === '1' ? undefined : noRealApiServer(),
    start: real,
  },
]

let counter = 0

/** A namespace nobody else uses. @returns its path below /api/v1 and /apis/… */
export async function freshNamespace(subject: Subject): Promise<string> {
  const name = `suite-${process.pid}-${++counter}`
  const answer = await subject.ask('POST', '/api/v1/namespaces', { body: { metadata: { name } } })
  if (answer.code !== 201) throw new Error(`no namespace: ${JSON.stringify(answer.body)}`)
  return name
}

export const uniqueName = (prefix: string): string => `${prefix}-${process.pid}-${++counter}`

export const configMap = (name: string, data: Record<string, string> = {}, labels?: Record<string, string>) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...(labels ? { labels } : {}) },
  data,
})

export const namesOf = (answer: Answer): string[] => answer.body.items.map((item: ApiObject) => item.metadata.name)

/** Asks again until the answer is as wanted. */
export async function eventually(ask: () => Promise<Answer>, wanted: (answer: Answer) => boolean): Promise<Answer> {
  const deadline = Date.now() + WAIT_MS
  for (;;) {
    const answer = await ask()
    if (wanted(answer)) return answer
    if (Date.now() > deadline) throw new Error(`not as wanted within ${WAIT_MS} ms: ${JSON.stringify(answer.body)}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
