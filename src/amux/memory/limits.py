"""Every number of the memory contract, with its reason (M18).

Bytes are serialised UTF-8 bytes; none of these are tokens.
"""

ENTRY_NAME = "MEMORY.md"
ENTRY_MAX_BYTES = 2 * 1024  # read at the start of every session: it must stay cheap
ENTRY_MAX_LINES = 64  # as above: a screen or two, not a list of all files
DOCUMENT_MAX_BYTES = 64 * 1024  # one topic; larger ones are several
SCOPE_MAX_DOCUMENTS = 1024  # a scope is searched whole, from memory
SCOPE_MAX_BYTES = 16 * 1024 * 1024  # as above: what one search can read within its deadline


QUERY_MAX_BYTES = 512  # a question, not a document: each term is one pass over the scope
QUERY_MAX_TERMS = 16  # as above: sixteen passes fit the deadline
HITS_DEFAULT = 5  # what a model reads before it narrows its question
HITS_MAX = 20  # twenty snippets of the least size fit one answer
PIECES_MAX = 16  # of a relaxed query (M41)
SNIPPET_MIN_BYTES = 80  # less than a line tells nothing
SNIPPET_MAX_BYTES = 320  # a hit and its neighbours; more is what get is for
SNIPPET_LEAD_BYTES = 80  # how far before its first match a window of a long line starts

SCAN_MAX_FILES = SCOPE_MAX_DOCUMENTS  # a whole legal scope
SCAN_MAX_BYTES = SCOPE_MAX_BYTES  # as above
SCAN_MAX_ENTRIES = 8192  # directory entries looked at: stray files must not stall a search
SCAN_MAX_SECONDS = 0.250  # a person waits, and so does a model
STEP_MAX_SECONDS = 0.001  # other calls are served between steps (M42)

ANSWER_MAX_BYTES = 8 * 1024  # the JSON body of an RPC answer
PAGE_MAX_BYTES = 6 * 1024  # the text block of an MCP answer, page wrapper included
PAGED_ANSWERS_MAX = 64  # answers that one caller may be reading page by page
PAGED_BYTES_MAX = 1024 * 1024  # of all of these together, as they came from the Hub
PAGED_KEEP_SECONDS = 600.0  # a model that thinks longer than this has lost its thread
BODY_MAX_BYTES = 512 * 1024  # 64 KiB of text is up to 384 KiB as JSON
WAIT_MAX_SECONDS = 2.0  # for a lock or a pending path (M25)
CLIENT_WAIT_SECONDS = 5.0  # for an answer of the Hub (M28)
