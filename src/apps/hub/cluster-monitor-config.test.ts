import { describe, expect, it } from 'vitest'
import { ConfigError } from '#runtime'
import { parseFlagDuration, readClusterMonitorConfig } from './cluster-monitor-config.ts'

describe('the flags of cluster-monitor', () => {
  it.each([
    ['5s', 5000],
    ['1m30s', 90_000],
    ['1.5h', 5_400_000],
    ['250ms', 250],
    ['0', 0],
    ['-5s', -5000],
    ['5', undefined],
    ['', undefined],
    ['s', undefined],
  ])('read %j as %s ms', (text, ms) => expect(parseFlagDuration(text)).toBe(ms))

  it('have the defaults of the original', () => {
    const { config } = readClusterMonitorConfig({}, {})
    expect(config.monitor).toMatchObject({
      address: { host: '0.0.0.0', port: 8080 },
      refreshMs: 5000,
      allNamespaces: false,
      defaultCluster: 'local-cluster',
    })
    expect(config.collection).toMatchObject({
      ...{ usageRefreshMs: 5000, retryMs: 5000, kubelets: 'proxy' },
      relisting: { everyMs: 5000, resources: ['nodes', 'namespaces', 'pods'] },
    })
    expect(config.publish?.nats.servers).toEqual([{ host: 'nats', port: 4222, tls: false }])
    expect(config.publish?.isNamespaceWanted?.('kube-system')).toBe(false)
  })

  it('refuse all that is wrong at once, each with its reason', () => {
    const read = () =>
      readClusterMonitorConfig(
        { MONITOR_DEAD_BAND: 'x' },
        { refresh: '0s', addr: 'nowhere', apiServer: 'https://a', kubeconfig: 'b' },
      )
    expect(read).toThrow(ConfigError)
    expect(read).toThrow(
      /-addr is "nowhere"[\s\S]*-refresh is 0s[\s\S]*-api-server is for[\s\S]*MONITOR_DEAD_BAND is "x"/,
    )
    expect(() => readClusterMonitorConfig({}, { context: 'a' })).toThrow('--context needs --kubeconfig')
  })

  it('publish nowhere where NATS is an empty text', () => {
    expect(readClusterMonitorConfig({}, { nats: '' }).config.publish).toBeUndefined()
  })
})
