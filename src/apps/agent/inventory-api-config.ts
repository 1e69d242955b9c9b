import { type ConfigReader, isLoopback } from '#runtime'

/** Where an agent answers about its inventory, and whom. */
export interface InventoryApiConfig {
  readonly host: string
  readonly port: number
  /** `kubernetes`: whom the cluster knows and allows, asked again after so long, ms; `disabled`: whoever reaches the port */
  readonly auth: { readonly kind: 'kubernetes'; readonly cacheTtlMs: number } | { readonly kind: 'disabled' }
}

/** @returns undefined: it answers nobody */
export function inventoryApi(read: ConfigReader): InventoryApiConfig | undefined {
  const isOn = read.flag('INVENTORY_HTTP_ENABLED', {
    default: false,
    meaning: "serve the inventory of this cluster over HTTP, from the agent's memory",
  })
  const mode = read.text('INVENTORY_AUTH_MODE', {
    default: 'kubernetes',
    oneOf: ['kubernetes', 'disabled'],
    meaning:
      'who may read there: kubernetes asks the cluster whose token it is and what they may (TokenReview, SubjectAccessReview); disabled lets everybody who reaches the port',
  })
  const host = read.optionalText('INVENTORY_HTTP_HOST', {
    meaning:
      'address it is served on; without it every address (0.0.0.0), and 127.0.0.1 where INVENTORY_AUTH_MODE is disabled',
  })
  const port = read.integer('INVENTORY_HTTP_PORT', {
    default: 8082,
    min: 0,
    max: 65535,
    meaning: 'port of it, plain HTTP: what travels further than a pod or a machine needs a TLS proxy before it',
  })
  const cacheTtlMs = read.duration('INVENTORY_AUTH_CACHE_TTL', {
    default: '30s',
    max: '10m',
    meaning: 'how long an answer of the cluster counts for the same token and question; 0 asks each time',
  })
  if (!isOn) return undefined
  return mode === 'disabled'
    ? { host: host ?? '127.0.0.1', port, auth: { kind: 'disabled' } }
    : { host: host ?? '0.0.0.0', port, auth: { kind: 'kubernetes', cacheTtlMs } }
}

/** What is to be said at the start; undefined: nothing. */
export function inventoryApiWarning({ auth, host }: InventoryApiConfig): string | undefined {
  if (auth.kind !== 'disabled') return undefined
  const who = isLoopback(host) ? 'everybody on this machine' : `everybody who reaches ${host}`
  return `INVENTORY_AUTH_MODE is disabled: ${who} may read the whole inventory of this cluster`
}
