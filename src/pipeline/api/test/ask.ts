import type { AuditEntry, AuditTrail } from '#audit'
import type { World } from './world.ts'

export interface Asked {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly headers: Readonly<Record<string, string | string[] | number | undefined>>
  /** `name=value` of what was set, for the next request */
  readonly cookies: readonly string[]
}

export interface Question {
  /** user name, told by the proxy */
  readonly as?: string
  readonly groups?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly cookies?: readonly string[]
}

const host = 'hub.example'

async function send(
  { server }: World,
  method: 'GET' | 'POST',
  url: string,
  { as, groups, headers = {}, cookies = [] }: Question,
  body?: object,
): Promise<Asked> {
  const response = await server.app.inject({
    method,
    url,
    headers: {
      host,
      ...(as !== undefined && { 'x-forwarded-user': as }),
      ...(groups !== undefined && { 'x-forwarded-groups': groups }),
      ...(cookies.length > 0 && { cookie: cookies.join('; ') }),
      ...headers,
    },
    ...(body && { payload: body }),
  })
  const isJson = String(response.headers['content-type']).includes('json')
  return {
    status: response.statusCode,
    body: isJson && response.body !== '' ? response.json() : {},
    headers: response.headers,
    cookies: [response.headers['set-cookie'] ?? []]
      .flat()
      .map((one) => one.split(';', 1)[0] ?? '')
      .filter((one) => !one.endsWith('=')), // what is taken away
  }
}

export const get = (world: World, url: string, question: Question = {}): Promise<Asked> =>
  send(world, 'GET', url, question)

/** As our own page posts. */
export const post = (world: World, url: string, body: object, question: Question = {}): Promise<Asked> =>
  send(
    world,
    'POST',
    url,
    { ...question, headers: { 'x-clusterpulse-request': '1', origin: `https://${host}`, ...question.headers } },
    body,
  )

/** Keeps what is recorded. */
export function aTrail(): AuditTrail & { readonly entries: AuditEntry[] } {
  const entries: AuditEntry[] = []
  return {
    entries,
    record: (entry) => {
      entries.push(entry)
    },
    flush: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  }
}
