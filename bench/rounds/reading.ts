import { readFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'

/** What the kernel and the hub's own /metrics say at one moment. */
export interface Reading {
  /** of the bench's clock, ms */
  readonly at: number
  /** user and system time of the process, ms */
  readonly cpuMs: number
  readonly rssMb: number
  readonly anonymousMb: number
  readonly sockets: number
  readonly collected: number
  readonly failed: number
  readonly roundSecondsSum: number
  readonly heapMb: number
  readonly externalMb: number
}

const TICKS_PER_SECOND = 100 // USER_HZ of every Linux that Node runs on

export function processOf(pid: number): Pick<Reading, 'cpuMs' | 'rssMb' | 'anonymousMb'> & { peakMb: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // After the name, which may hold spaces: state is field 3; user and system time are 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const kib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0)
  const mb = (name: string) => (kib(name) * 1024) / 1e6
  return {
    cpuMs: ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND,
    rssMb: mb('VmRSS'),
    anonymousMb: mb('RssAnon'),
    peakMb: mb('VmHWM'),
  }
}

export async function readingOf(pid: number, url: string): Promise<Reading> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const sum = (name: string, label = '') =>
    text
      .split('\n')
      .filter((line) => (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) && line.includes(label))
      .reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
  return {
    at: performance.now(),
    ...processOf(pid),
    sockets: sum('nodejs_active_resources', 'TCPSocketWrap'),
    collected: sum('clusterpulse_rounds_total', 'result="collected"'),
    failed: sum('clusterpulse_rounds_total', 'result="failed"'),
    roundSecondsSum: sum('clusterpulse_round_duration_seconds_sum'),
    heapMb: sum('nodejs_heap_size_used_bytes') / 1e6,
    externalMb: sum('nodejs_external_memory_bytes') / 1e6,
  }
}

interface ShownCluster {
  readonly status?: { readonly health?: string }
  readonly metrics?: { readonly nodes?: number } | null
  readonly freshness?: { readonly observed_at?: string; readonly received_at?: string } | null
}

/** What a person would see: how many clusters with their nodes, and how old the oldest and the newest of them is, seconds. */
export async function shown(url: string): Promise<{ clusters: number; oldestS: number; newestS: number }> {
  const clusters = (await (await fetch(`${url}/api/v1/clusters`)).json()) as ShownCluster[]
  const now = Date.now()
  const read = clusters.filter(({ metrics }) => (metrics?.nodes ?? 0) > 0)
  const ages = read.map(({ freshness }) => (now - Date.parse(freshness?.observed_at ?? '')) / 1000)
  return { clusters: read.length, oldestS: Math.max(...ages), newestS: Math.min(...ages) }
}

/** The machine, and how busy it was with other things: readings on a busy one say little. */
export const machine = (): string =>
  `${cpus().length} shared cores, ${cpus()[0]?.model ?? 'unknown'}, Node ${process.version}, load of the machine at the start ${loadavg()[0]?.toFixed(1)}`
