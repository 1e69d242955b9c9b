import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request as requestPlain } from 'node:http'
import { request } from 'node:https'
import type { SimulatedCluster } from '../fleet.ts'

export interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** undefined where it is no JSON */
  readonly body: unknown
}

export interface ListBody {
  readonly kind: string
  readonly metadata: { readonly continue?: string; readonly remainingItemCount?: number }
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly namespace?: string } & Record<string, unknown>
    readonly [field: string]: unknown
  }[]
}

/**
 * One GET as any client would send it.
 * @throws what the connection fails with: refused, reset, cut off in the middle, or aborted.
 */
export async function ask(
  { url, token, caPem }: Pick<SimulatedCluster, 'url' | 'token' | 'caPem'>,
  path: string,
  signal: AbortSignal = AbortSignal.timeout(5000),
): Promise<Answer> {
  const options = {
    headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
    signal,
    agent: false as const,
  }
  const call = url.startsWith('http:')
    ? requestPlain(url + path, options)
    : request(url + path, { ...options, ca: caPem })
  call.end()
  const [reply] = (await once(call, 'response')) as [IncomingMessage]
  let text = ''
  for await (const chunk of reply.setEncoding('utf8')) text += chunk
  return { status: reply.statusCode ?? 0, headers: reply.headers, body: parsed(text) }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** All pages of a list. */
export async function listAll(
  cluster: SimulatedCluster,
  path: string,
  limit = 100,
): Promise<ListBody['items'][number][]> {
  const items: ListBody['items'][number][] = []
  let next = ''
  do {
    const { status, body } = await ask(
      cluster,
      `${path}?limit=${limit}${next && `&continue=${encodeURIComponent(next)}`}`,
    )
    if (status !== 200) throw new Error(`${path} answers ${status}`)
    const page = body as ListBody
    items.push(...page.items)
    next = page.metadata.continue ?? ''
  } while (next !== '')
  return items
}
