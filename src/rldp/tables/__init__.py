"""From records to counts: files and frames of any size become a `Table` of (S, U).

schema          the columns and labels of S and U; labels to look at before a table is used
table           counts with their schema
parts           some columns of U, for someone who knows these
limits          sizes beyond which input is refused
read_table      a file → a table
record_files    the one place that opens a file or the standard input
csv             CSV and TSV files
encodings       the encoding of a text file, recognised and converted
arrow           Parquet and Arrow files
sources         what every open file of records offers; formats by their names
tally           frames and batches → counts
frame_columns   frames of pandas, polars, pyarrow and others
arrow_arrays    NumPy arrays and texts to Arrow and back
"""
