/**
 * Documents in git, by the git program on a bare cache: no working tree, no merge, no forced push.
 *
 *   fetch tip ─▶ what of our files differs? ─▶ commit on the tip ─▶ push ─▶ overtaken? again on the new tip
 *
 * Every address is judged before git connects, and it connects to no other. Credentials are in the environment of its process, keys of
 * ssh in files of a private folder for the time of a call.
 */
import type { Sink, SinkContext, SnapshotDeclaration } from '../sink.ts'
import { GitSink } from './git-sink.ts'

export const openGit = (declaration: SnapshotDeclaration, context: SinkContext): Sink =>
  new GitSink(declaration, context)
