"""What any channel promises over any F, and the risk for a person, in numbers.

audit        the worst case over F, with the distribution that attains it
guarantees   what a protocol promises beside what an audit finds
groups       the group of U values for whose knowers a report tells most
levels       how far one report can move the odds on S, by what someone knows
risk         what a channel can reveal about S, for a person
attackers    how often someone guesses S rightly, with and without a report
repeated     several reports of one person
coverage     how often a confidence set contains the truth
read_matrix  channels from arrays, frames and files
"""
