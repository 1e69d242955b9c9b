import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { Metrics, silentLogger } from '#runtime'
import { ExportMetrics } from './metrics.ts'
import { ReconcileMetrics } from './reconcile-metrics.ts'
import { measureWatches } from './targets/metrics.ts'

const RULES = new URL('../../../deploy/inventory/monitoring/rules.yaml', import.meta.url)

interface Alert {
  readonly alert: string
  readonly expr: string
}

/** What makes each alert fire: series as promtool writes them, by minutes, and the labels that the alert then has. */
const FIRED: Readonly<Record<string, { readonly series: Readonly<Record<string, string>>; readonly labels: object }>> =
  {
    KollectExportBehind: {
      series: {
        'kollect_export_lag_seconds{namespace="team-a",inventory="apps",sink="snapshot/git"}': '0+60x60',
        'kollect_export_window_seconds{namespace="team-a",inventory="apps",sink="snapshot/git"}': '60x60',
      },
      labels: { namespace: 'team-a', inventory: 'apps', sink: 'snapshot/git' },
    },
    KollectSinkExportErrors: {
      series: { 'kollect_sink_errors_total{reason="transient"}': '0+1x60' },
      labels: { reason: 'transient' },
    },
    KollectWriterConflict: { series: { kollect_export_conflicts_total: '0+1x60' }, labels: {} },
    KollectSinkConnectionTestFailures: {
      series: { 'kollect_sink_connection_test_total{type="git",result="failure"}': '0+1x60' },
      labels: { type: 'git', result: 'failure' },
    },
    KollectExportLatencyHigh: {
      series: {
        'kollect_export_duration_seconds_bucket{sink_type="git",le="10"}': '0x60',
        'kollect_export_duration_seconds_bucket{sink_type="git",le="30"}': '0+10x60',
        'kollect_export_duration_seconds_bucket{sink_type="git",le="+Inf"}': '0+10x60',
      },
      labels: { sink_type: 'git' },
    },
    KollectWatchStale: {
      series: {
        'kollect_watch_stale_seconds{group="apps",version="v1",kind="Deployment",namespace="team-a"}': '0+60x60',
      },
      labels: { kind: 'Deployment', namespace: 'team-a' },
    },
    KollectReconcileErrors: {
      series: { 'kollect_reconcile_errors_total{kind="KollectInventory",error_class="transient"}': '0+1x60' },
      labels: { kind: 'KollectInventory', error_class: 'transient' },
    },
    KollectWorkqueueBacklog: {
      series: { 'kollect_workqueue_depth{controller="inventories"}': '11x60' },
      labels: { controller: 'inventories' },
    },
  }

const failing = {
  reconciler: { name: 'inventories', reconcile: () => Promise.reject(new Error('no')) },
  triggers: [],
  concurrency: 1,
  logger: silentLogger,
}

describe('alerts on inventory', () => {
  const { spec } = parse(readFileSync(RULES, 'utf8')) as { spec: { groups: readonly { rules: readonly Alert[] }[] } }
  const alerts = spec.groups.flatMap(({ rules }) => rules)

  it('ask only for what is measured', async () => {
    const metrics = new Metrics({}, { processMetrics: false })
    const lag = { namespace: 'team-a', inventory: 'apps', sink: 'snapshot/git', lagMs: 1500, windowMs: 60_000 }
    const counted = new ExportMetrics(metrics, () => [lag])
    const reconciles = new ReconcileMetrics(metrics)
    const controller = reconciles.controller('KollectInventory', failing)
    controller.start()
    controller.enqueue({ name: 'apps' })
    const gvk = { group: 'apps', version: 'v1', kind: 'Deployment' }
    measureWatches(metrics, {
      load: { kinds: 1, watches: 1 },
      watches: () => [{ gvk, namespace: 'team-a', staleMs: 61_000 }],
    })
    counted.took('git', 45_000)
    counted.failed('transient')
    counted.conflict()
    counted.tested('git', false)
    await expect.poll(() => metrics.registry.metrics()).toMatch(/^kollect_reconcile_errors_total\{/m)
    await controller.stop()
    const text = await metrics.registry.metrics()
    const names = alerts.flatMap(({ expr }) => expr.match(/kollect_\w+/g) ?? [])
    expect(names.length).toBeGreaterThanOrEqual(alerts.length)
    for (const name of names) expect(text).toMatch(new RegExp(`^${name}[{ ]`, 'm'))
    expect(text).toContain('kollect_export_lag_seconds{namespace="team-a",inventory="apps",sink="snapshot/git"} 1.5')
    expect(text).toContain(
      'kollect_watch_stale_seconds{group="apps",version="v1",kind="Deployment",namespace="team-a"} 61',
    )
    // Slower than ten seconds is told from a little above ten.
    expect(text).toContain('kollect_export_duration_seconds_bucket{le="30",sink_type="git"} 0')
    expect(text).toContain('kollect_export_duration_seconds_bucket{le="60",sink_type="git"} 1')
  })

  const promtool = [process.env.PROMTOOL_ASSETS ?? '', join(process.env.HOME ?? '', '.cache/clusterpulse/promtool')]
    .map((folder) => join(folder, 'promtool'))
    .find((path) => existsSync(path))

  it.skipIf(promtool === undefined && process.env.CI_REQUIRE_ALL !== '1')('each fire, by promtool', () => {
    const folder = mkdtempSync(join(tmpdir(), 'inventory-rules-'))
    writeFileSync(join(folder, 'rules.yaml'), stringify({ groups: spec.groups }))
    expect(Object.keys(FIRED).sort()).toEqual(alerts.map(({ alert }) => alert).sort())
    const tests = Object.entries(FIRED).map(([alertname, { series, labels }]) => ({
      interval: '1m',
      input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
      promql_expr_test: [
        {
          expr: `count by (alertname) (ALERTS{alertname="${alertname}",alertstate="firing"${Object.entries(labels)
            .map(([label, value]) => `,${label}="${value}"`)
            .join('')}})`,
          eval_time: '50m',
          exp_samples: [{ labels: `{alertname="${alertname}"}`, value: 1 }],
        },
      ],
    }))
    writeFileSync(
      join(folder, 'test.yaml'),
      stringify({ rule_files: ['rules.yaml'], evaluation_interval: '1m', tests }),
    )
    const check = spawnSync(promtool ?? 'promtool', ['check', 'rules', '--lint-fatal', join(folder, 'rules.yaml')], {
      encoding: 'utf8',
    })
    expect(check.status, check.stdout + check.stderr).toBe(0)
    const run = spawnSync(promtool ?? 'promtool', ['test', 'rules', join(folder, 'test.yaml')], { encoding: 'utf8' })
    expect(run.status, run.stdout + run.stderr).toBe(0)
  })
})
