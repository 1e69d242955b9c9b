import type { Fault } from '../../kind.ts'
import { bucketEndpoint, type Endpoint, gitEndpoint } from './endpoint.ts'
import { faultIf, type Json, listOf, recordOf, shown, textOf } from './json.ts'
import type { KollectKnown } from './known.ts'
import { documentPathProblem, rowPathProblem } from './path-template.ts'
import { endpointFaults, type SinkSubject, type SinkType, secretFaults, sinkFaults, withoutEffect } from './sink.ts'

const BLOCKS = ['git', 'gitlab', 'objectStore', 'http']
const gitFormats = ['yaml', 'json', 'ndjson']
const git: SinkType = {
  block: 'git',
  formats: gitFormats,
  takesPathTemplate: true,
  takesLayout: true,
}
const TYPES: Readonly<Record<string, SinkType>> = {
  git,
  gitlab: { ...git, block: 'gitlab', alsoBlocks: ['git'] },
  s3: { block: 'objectStore', formats: ['json'], takesPathTemplate: true },
}
/** What takes the place of a type that is not built. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  gcs: "write to Google's bucket by its S3 interface: type s3 with the endpoint https://storage.googleapis.com/BUCKET and HMAC keys",
  azureblob: 'write to a store that speaks S3, with type s3, or to git',
  http: 'write to git or to a store that speaks S3, or publish events with a KollectEventSink',
}

/** Everything wrong with the spec of a sink of documents. */
export function snapshotSinkFaults(spec: Json, metadata: Json, known: KollectKnown): Fault[] {
  const name = textOf(spec.type)
  if (name === undefined) return []
  const instead = Object.hasOwn(LEFT_OUT, name) ? LEFT_OUT[name] : undefined
  if (instead) return [{ path: 'spec.type', message: `is ${shown(name)}, which is not built: ${instead}` }]
  const type = Object.hasOwn(TYPES, name) ? TYPES[name] : undefined
  if (!type) return []
  const subject: SinkSubject = { spec, metadata, known, type: name }
  return [
    ...sinkFaults(subject, type, BLOCKS),
    ...placeFaults(subject, type.takesLayout ? gitEndpoint : bucketEndpoint),
    ...faultIf(
      'spec.pathTemplate',
      textOf(spec.pathTemplate) !== undefined && documentPathProblem(String(spec.pathTemplate)),
    ),
    ...layoutFaults(spec.layout),
    ...gitFaults(subject),
    ...mergeRequestFaults(subject),
    ...objectStoreFaults(subject),
  ]
}

function placeFaults(subject: SinkSubject, parse: (text: string) => Endpoint): Fault[] {
  const { spec, type } = subject
  return [
    ...faultIf(
      'spec.endpoint',
      spec.endpoint === undefined && `is missing: a sink of type ${type} needs to know where`,
    ),
    ...endpointFaults(subject, 'spec.endpoint', spec.endpoint, parse),
  ]
}

function layoutFaults(value: unknown): Fault[] {
  const { pathTemplate, index } = recordOf(value)
  const indexPath = recordOf(index).pathTemplate
  return [
    ...faultIf('spec.layout.pathTemplate', textOf(pathTemplate) !== undefined && rowPathProblem(String(pathTemplate))),
    ...faultIf(
      'spec.layout.index.pathTemplate',
      textOf(indexPath) !== undefined && documentPathProblem(String(indexPath)),
    ),
  ]
}

/** Why this is no short name of a branch. */
function branchProblem(branch: string): string | undefined {
  if (branch.startsWith('refs/')) return `is ${shown(branch)}: write the short name, such as main`
  const fits =
    /^[A-Za-z0-9][A-Za-z0-9._/-]*$/.test(branch) &&
    !branch.includes('..') &&
    !branch.includes('//') &&
    !/(\.|\/|\.lock)$/.test(branch)
  return fits
    ? undefined
    : `is ${shown(branch)}, which git does not take as a branch: write a name such as main or inventory/west`
}

function gitFaults(subject: SinkSubject): Fault[] {
  const { spec, known } = subject
  const { branch, pushPolicy, auth, author, commitMessage, commitTrailers } = recordOf(spec.git)
  const { type: authType, secretRef } = recordOf(auth)
  const { name, email } = recordOf(author)
  const endpoint = gitEndpoint(textOf(spec.endpoint)?.trim() ?? '')
  const parts = 'problem' in endpoint ? undefined : endpoint
  const isSsh = parts?.scheme === 'ssh'
  const isLine = (text: unknown) => typeof text !== 'string' || !/[\r\n\0]/.test(text)
  return [
    ...faultIf('spec.git.branch', textOf(branch) !== undefined && branchProblem(String(branch))),
    ...faultIf(
      'spec.endpoint',
      parts?.branch !== undefined &&
        branchProblem(parts.branch) &&
        `names a branch that git does not take: ${shown(parts.branch)}`,
    ),
    ...faultIf(
      'spec.git.pushPolicy',
      pushPolicy === 'ForcePush' &&
        known.semantics === 'strict' &&
        'is ForcePush, which overwrites what other clusters wrote: write Commit, or set KOLLECT_SEMANTICS=original while you migrate',
    ),
    ...faultIf(
      'spec.git.auth.type',
      parts !== undefined &&
        ((authType === 'ssh' && !isSsh) || (authType === 'token' && isSsh)) &&
        `is ${shown(String(authType))}, and the endpoint is reached by ${parts.scheme}: change one of the two, or leave this out`,
    ),
    ...secretFaults(subject, 'spec.git.auth.secretRef', secretRef),
    ...faultIf(
      'spec.git.commitMessage',
      !isLine(commitMessage) && 'has several lines: put what is below the first into commitBody',
    ),
    ...listOf(commitTrailers).flatMap((trailer, at) =>
      faultIf(
        `spec.git.commitTrailers[${at}]`,
        typeof trailer === 'string' &&
          !/^[A-Za-z0-9-]+: ?[^\r\n]+$/.test(trailer) &&
          `is ${shown(trailer)}: write one line such as "Reviewed-by: inventory"`,
      ),
    ),
    ...[['name', name] as const, ['email', email] as const].flatMap(([field, text]) =>
      faultIf(
        `spec.git.author.${field}`,
        typeof text === 'string' &&
          /[<>\r\n\0]/.test(text) &&
          'has a line break or one of < and >, which git does not take',
      ),
    ),
  ]
}

function mergeRequestFaults({ spec, known }: SinkSubject): Fault[] {
  const { mode, autoMerge } = recordOf(recordOf(spec.gitlab).mergeRequest)
  const path = 'spec.gitlab.mergeRequest'
  return [
    ...faultIf(
      `${path}.mode`,
      mode === 'merge_request' &&
        'is merge_request, which is not built: write direct with a branch of its own in git.branch, and let CI open the request from it',
    ),
    ...withoutEffect(
      known,
      `${path}.autoMerge`,
      autoMerge === true,
      'has no effect without merge requests: leave it out',
    ),
  ]
}

function objectStoreFaults({ spec, known }: SinkSubject): Fault[] {
  const { format, hotAttributes, version } = recordOf(spec.objectStore)
  const path = 'spec.objectStore'
  return [
    ...faultIf(`${path}.format`, format === 'parquet' && 'is "parquet", which is not built: take json'),
    ...withoutEffect(
      known,
      `${path}.hotAttributes`,
      hotAttributes !== undefined,
      'has no effect without parquet: leave it out',
    ),
    ...withoutEffect(known, `${path}.version`, version !== undefined, 'has no effect: leave it out'),
  ]
}
