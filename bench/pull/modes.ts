/** One way to read all nodes and pods, in a fresh process. CPU is counted from after the imports to the facts in hand. */
import type { KubeObject, NodeFacts, PodFacts } from '#kube'

type Facts = { nodes: NodeFacts[]; pods: PodFacts[] }
type Mode = (url: string, ca: string) => Promise<() => Promise<Facts>>

/** What the hub does: our client, protobuf, facts. */
const ours: Mode = async (server, ca) => {
  const { createKubeClient, nodes, podFacts, pods } = await import('#kube')
  return async () => {
    await using kube = createKubeClient({ server, ca, verifyTls: true, credentials: { kind: 'token', token: 't' } })
    return { nodes: await kube.listAll(nodes), pods: (await kube.listAll(pods)).map(podFacts) }
  }
}

/** undici and JSON.parse, the same pages, the same facts kept. */
const raw: Mode = async (server, ca) => {
  const { Pool } = await import('undici')
  const { nodes, podFacts } = await import('#kube')
  return async () => {
    const pool = new Pool(server, { connect: { ca }, connections: 4 })
    const all = async <T>(path: string, read: (object: KubeObject) => T): Promise<T[]> => {
      const items: T[] = []
      let next = ''
      do {
        const query = `limit=500${next ? `&continue=${next}` : ''}`
        const answer = await pool.request({
          method: 'GET',
          path: `${path}?${query}`,
          headers: { authorization: 'Bearer t' },
        })
        const page = (await answer.body.json()) as { metadata: { continue?: string }; items: KubeObject[] }
        for (const item of page.items) items.push(read(item))
        next = page.metadata.continue ?? ''
      } while (next)
      return items
    }
    const facts = {
      nodes: await all('/api/v1/nodes', nodes.fromJson as (object: KubeObject) => NodeFacts),
      pods: await all('/api/v1/pods', podFacts),
    }
    await pool.close()
    return facts
  }
}

/** The typed Node client, the same pages, the same facts kept. */
const typed: Mode = async (server, ca) => {
  const { typedClient } = await import('./typed-client.js')
  const { nodes, podFacts } = await import('#kube')
  return async () => {
    const api = typedClient(server, Buffer.from(ca).toString('base64'))
    type Lister = (next: string | undefined) => ReturnType<typeof api.listNode>
    const all = async <T>(list: Lister, read: (object: KubeObject) => T): Promise<T[]> => {
      const items: T[] = []
      let next: string | undefined
      do {
        const page = await list(next)
        for (const item of page.items) items.push(read(item as KubeObject))
        next = page.metadata?._continue
      } while (next)
      return items
    }
    const request = (next: string | undefined) => ({ limit: 500, ...(next ? { _continue: next } : {}) })
    return {
      nodes: await all((next) => api.listNode(request(next)), nodes.fromJson as (object: KubeObject) => NodeFacts),
      pods: await all((next) => api.listPodForAllNamespaces(request(next)), podFacts),
    }
  }
}

const modes: Record<string, Mode> = { ours, raw, typed }
const [, , mode = '', url = '', ca = ''] = process.argv
const collect = await modes[mode]?.(url, Buffer.from(ca, 'base64').toString('utf8'))
if (!collect) throw new Error(`unknown mode ${mode}`)
const baseRss = process.memoryUsage.rss()
const before = process.cpuUsage()
const startedAt = performance.now()
const facts = await collect()
const wallMs = performance.now() - startedAt
const cpu = process.cpuUsage(before)
// A fingerprint of what was read: the modes must agree on it.
const digest = [facts.nodes.length, facts.pods.length, facts.pods.filter((pod) => pod.nodeName === '').length]
digest.push(
  facts.pods.reduce((sum, pod) => sum + pod.containers.reduce((n, one) => n + Number.parseInt(one.cpu, 10), 0), 0),
)
process.send?.({
  cpuMs: (cpu.user + cpu.system) / 1000,
  wallMs,
  peakRssMb: process.resourceUsage().maxRSS / 1024,
  baseRssMb: baseRss / 1024 / 1024,
  digest: digest.join('/'),
})
process.disconnect?.()
