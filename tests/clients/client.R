# Runs the R client for test_r.py: Rscript client.R FOLDER-OF-CLIENT TASK ARGUMENT

arguments <- commandArgs(trailingOnly = TRUE)
argument <- arguments[3]
for (file in list.files(file.path(arguments[1], "R"), full.names = TRUE)) source(file)

outcome <- function(work) {
  tryCatch(work, error = function(e) {
    kind <- c(rldp_protocol_error = "ProtocolError", rldp_record_error = "RecordError")[class(e)[1]]
    paste0(if (is.na(kind)) "Error" else kind, ": ", conditionMessage(e))
  })
}

write <- function(x) cat(jsonlite::toJSON(x, auto_unbox = TRUE, digits = NA))
job <- function() jsonlite::fromJSON(argument, simplifyVector = FALSE)

tasks <- list(
  # reports and labels for cells and words in files next to the protocol
  draw = function() {
    p <- read_protocol(paste0(argument, ".json"))
    cells <- matrix(readBin(paste0(argument, ".cells"), "integer", 1e8, 4), nrow = 2)
    bytes <- readBin(paste0(argument, ".words"), "raw", 1e9)
    reports <- draw(p, cells[1, ] + 1, cells[2, ] + 1, words_from(bytes))
    labels <- report_texts(p, reports)
    write(list(reports = reports, labels = I(labels), fingerprint = p$fingerprint))
  },
  # what each file of a list is to the client: its fingerprint, or the name of an error
  take = function() {
    options <- job()$options
    write(I(vapply(job()$files, function(file) outcome(read_protocol(file, options$signedBy)$fingerprint), "")))
  },
  # what each record of a list gives: a label, or an error
  release = function() {
    job <- job()
    out <- character()
    for (text in unlist(job$file)) {
      p <- tryCatch(read_protocol(charToRaw(text)), error = identity)
      if (inherits(p, "error")) {
        out <- c(out, outcome(stop(p)))
        next
      }
      for (i in seq_along(job$records)) {
        record <- lapply(job$records[[i]], function(x) if (is.null(x)) NA else x)
        frame <- structure(record, class = "data.frame", row.names = 1L)
        out <- c(out, outcome(
          if (is.null(job$key)) release(p, frame)$y
          else release(p, within(frame, id <- job$ids[[i]]), "id", raw_from_hex(job$key), per = if (is.null(job$per)) "person" else job$per)$y
        ))
      }
    }
    write(I(out))
  },
  # secure reports of one record, counted
  count = function() {
    job <- job()
    p <- read_protocol(charToRaw(job$file))
    frame <- as.data.frame(job$record)[rep(1, job$times), , drop = FALSE]
    found <- table(factor(release(p, frame)$y, p$report_labels))
    write(I(as.integer(found)))
  },
  # estimates from texts
  estimate = function() {
    job <- job()
    p <- read_protocol(charToRaw(job$file))
    frame <- data.frame(y = unlist(job$reports))
    if (!is.null(job$weights)) frame$w <- unlist(job$weights)
    e <- suppressMessages(estimate(p, frame, weights = if (!is.null(job$weights)) "w", level = job$level))
    write(list(cells = as.list(e$cells), s = as.list(e$s), u = as.list(e$u), covariance = as.vector(e$covariance)))
  }
)
tasks[[arguments[2]]]()
