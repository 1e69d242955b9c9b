import { fields, items, text, textMap } from '#collect'
import { type KubeObject, serviceMessage } from '#kube'
import { builtIn, defineResource } from './define.ts'
import { createdAt, numberIn, owner, textOf } from './read.ts'

/** Services: what they answer to, and which pods they choose. */
export const services = defineResource({
  name: 'services',
  singular: 'service',
  shortNames: ['svc'],
  title: 'Services',
  reads: [builtIn('v1', 'Service', 'services', serviceMessage)],
  access: 'namespaced',
  everyMs: 60_000,
  maxRows: 100_000,
  columns: {
    type: { label: 'Type', kind: 'string', read: textOf('spec', 'type') },
    clusterIp: { label: 'Cluster IP', kind: 'string', read: textOf('spec', 'clusterIP') },
    addresses: { label: 'Addresses', kind: 'string', read: (service) => addressesOf(service) },
    ports: {
      label: 'Ports',
      kind: 'string',
      read: ({ spec }) => items(fields(spec).ports).map(portText).join(', ') || null,
    },
    selector: { label: 'Selector', kind: 'string', read: ({ spec }) => selectorText(fields(spec).selector) },
    owner,
    createdAt,
  },
  counts: { byType: { function: 'count', field: undefined, groupBy: 'type' } },
})

/** Where it is reached from outside: of its load balancer, its external addresses, or the name it stands for. */
function addressesOf({ spec, status }: KubeObject): string | null {
  const ingress = items(fields(fields(status).loadBalancer).ingress).map(
    ({ ip, hostname }) => text(ip) || text(hostname),
  )
  const { externalIPs, externalName } = fields(spec)
  const external = Array.isArray(externalIPs) ? externalIPs.map(text) : []
  return [...ingress, ...external, text(externalName)].filter(Boolean).join(', ') || null
}

/** As kubectl prints it: 443/TCP, 80:30080/TCP. */
function portText({ port, nodePort, protocol }: Readonly<Record<string, unknown>>): string {
  const node = numberIn(nodePort) ? `:${numberIn(nodePort)}` : ''
  return `${numberIn(port) ?? '?'}${node}/${text(protocol) || 'TCP'}`
}

const selectorText = (selector: unknown): string | null =>
  Object.entries(textMap(selector))
    .map(([key, value]) => `${key}=${value}`)
    .join(',') || null
