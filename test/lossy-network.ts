import { spawnSync } from 'node:child_process'

const INSIDE = 'INSIDE_LOSSY_NETWORK'

/**
 * Runs this program again in a network of its own, where the kernel can lose packets of one port. Resolves there; outside the process
 * ends with what the inner one ended with.
 * @throws Error where this machine has no such networks: what is missing
 */
export function enterLossyNetwork(): void {
  if (process.env[INSIDE]) return
  const missing = whatIsMissing()
  if (missing !== undefined) throw new Error(missing)
  const [file = '', ...words] = process.argv.slice(1)
  const inner = [
    'sh',
    '-c',
    'ip link set lo up && exec "$@"',
    'sh',
    process.execPath,
    ...process.execArgv,
    file,
    ...words,
  ]
  const env = { ...process.env, [INSIDE]: '1' }
  process.exit(spawnSync('unshare', ['--map-root-user', '--net', ...inner], { stdio: 'inherit', env }).status ?? 1)
}

/** undefined: nothing is */
export function whatIsMissing(): string | undefined {
  const probe = ['--map-root-user', '--net', 'sh', '-c', 'ip link set lo up && nft list ruleset']
  const { status, error, stderr } = spawnSync('unshare', probe, { encoding: 'utf8' })
  if (status === 0) return undefined
  const why = error?.message ?? stderr.trim()
  return `packets can be lost on Linux where network namespaces are allowed and nft is installed (apt-get install nftables): ${why}`
}

/** Packets to and from a port of this network that get lost. */
export class LossyPort {
  readonly #port: number

  constructor(port: number) {
    this.#port = port
  }

  /** @param percent of the packets, each by chance, in both directions; 100: none passes */
  lose(percent: number): void {
    const lost = percent >= 100 ? 'counter drop' : `numgen random mod 100 < ${percent} counter drop`
    const rules = ['dport', 'sport'].map((side) => `add rule inet loss in tcp ${side} ${this.#port} ${lost}`)
    const chain = 'add chain inet loss in { type filter hook input priority 0; }'
    this.#nft(['add table inet loss', 'delete table inet loss', 'add table inet loss', chain, ...rules].join('\n'))
  }

  /** so far, since `lose` was called last */
  get lost(): number {
    const said = this.#nft('list table inet loss')
    return [...said.matchAll(/packets (\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0)
  }

  #nft(rules: string): string {
    const { status, stdout, stderr } = spawnSync('nft', ['-f', '-'], { input: rules, encoding: 'utf8' })
    if (status !== 0) throw new Error(`nft: ${stderr}`)
    return stdout
  }
}
