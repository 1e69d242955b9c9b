/**
 * Members of one hub: how they join, each alone and all at once; what they cost while they are only there; how soon one that is revoked
 * is out.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join as path } from 'node:path'
import { parseArgs } from 'node:util'
import { measureCrowd } from './join/crowd.ts'
import { measureHeartbeats } from './join/heartbeats.ts'
import { ROOT } from './join/hub.ts'
import { crowdReport, heartbeatsReport, METHOD, revokeReport } from './join/report.ts'
import { measureRevoke } from './join/revoke.ts'
import { machine } from './rounds/reading.ts'

const PARTS = ['join', 'heartbeats', 'revoke'] as const
type Part = (typeof PARTS)[number]

/**
 * `--of join,heartbeats,revoke` for some of them (the results page keeps the others), `--alone N` one after the other, `--crowd N` at once,
 * `--members N` and `--seconds N` of heartbeats, `--revoked N`, `--bin FILE` instead of bin/clusterpulse.js, `--no-write`.
 */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      of: { type: 'string', default: PARTS.join() },
      alone: { type: 'string', default: '100' },
      crowd: { type: 'string', default: '2000' },
      members: { type: 'string', default: '10000' },
      seconds: { type: 'string', default: '120' },
      revoked: { type: 'string', default: '60' },
      bin: { type: 'string', default: `${ROOT}bin/clusterpulse.js` },
      'no-write': { type: 'boolean', default: false },
    },
  })
  const { bin } = values
  const measures: Readonly<Record<Part, (directory: string) => Promise<string>>> = {
    join: async (directory) =>
      crowdReport(await measureCrowd(bin, directory, { alone: Number(values.alone), crowd: Number(values.crowd) })),
    heartbeats: async (directory) => {
      const size = { members: Number(values.members), seconds: Number(values.seconds) }
      return heartbeatsReport(await measureHeartbeats(bin, directory, size))
    },
    revoke: async (directory) => revokeReport(await measureRevoke(bin, directory, Number(values.revoked))),
  }
  const file = `${ROOT}bench/results/join.md`
  const kept = await sectionsOf(file)
  for (const part of PARTS.filter((one) => values.of.split(',').includes(one))) {
    const directory = await mkdtemp(path(tmpdir(), 'bench-join-'))
    try {
      const section = `## ${part}\n\nOn ${machine()}.\n\n${await measures[part](directory)}`
      process.stdout.write(`${section}\n`)
      kept.set(part, section)
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
  }
  if (values['no-write']) return
  await mkdir(`${ROOT}bench/results`, { recursive: true })
  const sections = PARTS.flatMap((part) => kept.get(part) ?? [])
  await writeFile(file, `${['# Members', ...sections, METHOD].join('\n\n')}\n`)
}

/** What was measured before, part by part. */
async function sectionsOf(file: string): Promise<Map<string, string>> {
  const text = await readFile(file, 'utf8').catch(() => '')
  const found = text.split(/\n\n(?=## )/).flatMap((section): [string, string][] => {
    const name = /^## (\w+)\n/.exec(section)?.[1]
    return name !== undefined && PARTS.some((part) => part === name) ? [[name, section.trimEnd()]] : []
  })
  return new Map(found)
}
