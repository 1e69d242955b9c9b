import { describe, expect, it } from 'vitest'
import { ConfigError } from '#runtime'
import { allSettings, readAgentConfig } from './config.ts'

const read = (env: Record<string, string>, flags: Record<string, string | undefined> = {}) =>
  readAgentConfig({ CLUSTER_NAME: 'west', ...env }, flags).config

const faults = (env: Record<string, string>): string => {
  try {
    readAgentConfig(env)
    return ''
  } catch (error) {
    return error instanceof ConfigError ? error.message : String(error)
  }
}

describe('the configuration of the agent', () => {
  it('is complete with a name only, as documented', () =>
    expect(read({})).toMatchObject({
      cluster: 'west',
      ingesterAddress: undefined,
      token: undefined,
      inventory: { semantics: 'strict', allowPrivate: false, watchNamespaces: [], maxExportBytes: 1_572_864 },
      intervalMs: 60_000,
      operatorScanIntervalMs: 300_000,
      buffer: { directory: './data/agent', maxBytes: 2 ** 30, maxAgeMs: 86_400_000 },
      healthAddress: { host: '0.0.0.0', port: 8081 },
      logLevel: 'info',
    }))

  it('has a hub where an address or a token says so, and else collects inventory alone', () => {
    expect(read({ COLLECTOR_TOKEN: 't' }).ingesterAddress).toBe('ingester:9443')
    expect(read({ INGESTER_ADDRESS: 'hub:9443' }).ingesterAddress).toBe('hub:9443')
    expect(read({ COLLECTOR_TOKEN: 't', INVENTORY: 'false' }).inventory).toBeUndefined()
    expect(faults({ CLUSTER_NAME: 'west', INVENTORY: 'false' })).toMatch(/there is nothing to do/)
    expect(readAgentConfig({ CLUSTER_NAME: 'west' }).warnings).toEqual([])
  })

  it('is the only replica unless told otherwise, and gives up leading before another may begin', () => {
    expect(read({}).leaderElection).toBeUndefined()
    const on = { LEADER_ELECT: 'true', NAMESPACE: 'team-a' }
    const usual = { namespace: 'team-a', leaseMs: 60_000, renewDeadlineMs: 40_000, retryMs: 5000 }
    expect(read(on).leaderElection).toEqual(usual)
    const bad = { CLUSTER_NAME: 'west', ...on, LEADER_ELECT_DEADLINE: '60s', LEADER_ELECT_RETRY: '60s' }
    expect(faults(bad)).toMatch(/DEADLINE must be shorter than LEADER_ELECT_LEASE[\s\S]*RETRY must be shorter/)
  })

  it('has rights in namespaces only where it is told in which', () => {
    const tenant = { TENANT_MODE: 'true', WATCH_NAMESPACES: 'team-a,team-b' }
    expect(read(tenant).inventory).toMatchObject({ tenantMode: true, watchNamespaces: ['team-a', 'team-b'] })
    expect(faults({ CLUSTER_NAME: 'west', TENANT_MODE: 'true' })).toMatch(/WATCH_NAMESPACES is not set/)
    const strange = { CLUSTER_NAME: 'west', WATCH_NAMESPACES: 'TEAM-B, *,team-a' }
    expect(faults(strange)).toMatch(/whole names of namespaces, which "TEAM-B", "\*" cannot be/)
  })

  it('serves its inventory to nobody, and where it is told to only to whom the cluster knows', () => {
    expect(read({}).inventoryApi).toBeUndefined()
    const on = { INVENTORY_HTTP_ENABLED: 'true' }
    const known = { kind: 'kubernetes', cacheTtlMs: 30_000 }
    expect(read(on).inventoryApi).toEqual({ host: '0.0.0.0', port: 8082, auth: known })
    expect(read({ ...on, INVENTORY_AUTH_CACHE_TTL: '0' }).inventoryApi?.auth).toEqual({ ...known, cacheTtlMs: 0 })
    expect(faults({ CLUSTER_NAME: 'west', ...on, INVENTORY: 'false', INGESTER_ADDRESS: 'hub:1' })).toMatch(
      /nothing to serve/,
    )
  })

  it('keeps a port without sign-in on the machine unless told otherwise, and warns of it', () => {
    const open = { CLUSTER_NAME: 'west', INVENTORY_HTTP_ENABLED: 'true', INVENTORY_AUTH_MODE: 'disabled' }
    const { config, warnings } = readAgentConfig(open)
    expect(config.inventoryApi).toEqual({ host: '127.0.0.1', port: 8082, auth: { kind: 'disabled' } })
    expect(warnings).toEqual([
      expect.stringMatching(/INVENTORY_AUTH_MODE is disabled: everybody on this machine may read/),
    ])
    const wide = readAgentConfig({ ...open, INVENTORY_HTTP_HOST: '0.0.0.0' })
    expect(wide.config.inventoryApi?.host).toBe('0.0.0.0')
    expect(wide.warnings).toEqual([expect.stringMatching(/everybody who reaches 0\.0\.0\.0 may read/)])
  })

  it.each([
    ['60', 60_000],
    ['30s', 30_000],
    ['2m', 120_000],
    ['500ms', undefined],
    ['0', undefined],
    ['-5', undefined],
    ['soon', undefined],
  ])('reads a COLLECT_INTERVAL of %s as %s ms, or refuses the start', (text, ms) => {
    if (ms === undefined)
      expect(faults({ CLUSTER_NAME: 'west', COLLECT_INTERVAL: text })).toMatch(/COLLECT_INTERVAL is/)
    else expect(read({ COLLECT_INTERVAL: text }).intervalMs).toBe(ms)
  })

  it.each([
    ['1GiB', 2 ** 30],
    ['512MiB', 2 ** 29],
    ['100M', 1e8],
    ['1.5Gi', 1.5 * 2 ** 30],
    ['1MiB', undefined],
    ['much', undefined],
  ])('reads BUFFER_MAX_BYTES of %s as %s', (text, bytes) => {
    if (bytes === undefined)
      expect(faults({ CLUSTER_NAME: 'west', BUFFER_MAX_BYTES: text })).toMatch(/BUFFER_MAX_BYTES is/)
    else expect(read({ BUFFER_MAX_BYTES: text }).buffer.maxBytes).toBe(bytes)
  })

  it('tells all faults together', () => {
    const told = faults({
      INGESTER_TLS_ENABLED: 'true',
      INGESTER_CA_FINGERPRINT: 'abc',
      INGESTER_TLS_CERT: '/tls.crt',
      HEALTH_ADDRESS: 'nowhere',
    })
    expect(told).toMatch(/CLUSTER_NAME is not set/)
    expect(told).toMatch(/INGESTER_CA_FINGERPRINT is no SHA-256/)
    expect(told).toMatch(/INGESTER_TLS_CERT and INGESTER_TLS_KEY belong together/)
    expect(told).toMatch(/HEALTH_ADDRESS is "nowhere"/)
  })

  it('warns where the token travels readable, and that BUFFER_SIZE means nothing any more', () => {
    const { warnings } = readAgentConfig({ CLUSTER_NAME: 'west', BUFFER_SIZE: '10', INGESTER_ADDRESS: 'hub:9443' })
    expect(warnings).toEqual([expect.stringMatching(/BUFFER_SIZE/), expect.stringMatching(/readable/)])
    expect(readAgentConfig({ CLUSTER_NAME: 'west', INGESTER_TLS_ENABLED: 'yes' }).warnings).toEqual([])
  })

  it('lets flags win over the environment', () =>
    expect(read({ BUFFER_DIR: '/env' }, { BUFFER_DIR: '/flag', KUBECONFIG: undefined }).buffer.directory).toBe('/flag'))

  it('describes every documented variable for the reference page', () => {
    const names = allSettings().agent.map(({ name }) => name)
    for (const name of [
      'CLUSTER_NAME',
      'INGESTER_ADDRESS',
      'COLLECTOR_TOKEN',
      'COLLECT_INTERVAL',
      'BUFFER_SIZE',
      'INGESTER_TLS_ENABLED',
      'INGESTER_TLS_CA',
      'INGESTER_TLS_SERVER_NAME',
      'OPERATOR_SCAN_INTERVAL',
      'LOG_LEVEL',
    ])
      expect(names).toContain(name)
  })
})
